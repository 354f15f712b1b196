# SPDX-License-Identifier: GPL-2.0-or-later
# Packages: a source archive, a .deb and an .rpm, all under $(O).

.PHONY: dist deb rpm
DIST     := $(O)/heaptap-$(VERSION).tar.gz
PACK_ENV  = O=$(abspath $(O)) VERSION=$(VERSION)

dist:                            ## build/heaptap-VERSION.tar.gz of the last commit
	$(Q)mkdir -p $(O)
	$(Q)git archive --prefix=heaptap-$(VERSION)/ -o $(DIST) HEAD
	@echo "  DIST    $(DIST)"

deb: all                         ## build/heaptap_VERSION_ARCH.deb for Debian and Ubuntu (no root)
	$(Q)$(PACK_ENV) MAKE="$(MAKE)" packaging/deb.sh

rpm: dist                        ## build/heaptap-VERSION.ARCH.rpm for Fedora, of the last commit (no root)
	$(Q)$(PACK_ENV) packaging/rpm.sh
