# SPDX-License-Identifier: GPL-2.0-or-later
# Packages: a source archive, a .deb and an .rpm, all under $(O).

.PHONY: dist dependencies check-reproducible deb rpm
DIST     := $(O)/heaptap-$(VERSION).tar.gz
PACK_ENV  = O=$(abspath $(O)) VERSION=$(VERSION)

dependencies: all                ## the libraries of heaptap, with versions and licences; fails if packaging/dependencies.tsv is not right
	$(Q)CC="$(CC)" packaging/dependencies.sh $(O)/heaptap >$(O)/heaptap-$(VERSION).dependencies.tsv
	@echo "  LIST    $(O)/heaptap-$(VERSION).dependencies.tsv"

check-reproducible:              ## two builds in different directories, which must be equal (some minutes)
	$(Q)CC="$(CC)" tests/packages/reproducible.sh

# The list of libraries, packaging/dependencies.tsv, is in it.
dist:                            ## build/heaptap-VERSION.tar.gz of the last commit
	$(Q)mkdir -p $(O)
	$(Q)git archive --prefix=heaptap-$(VERSION)/ -o $(DIST) HEAD
	@echo "  DIST    $(DIST)"

deb: all                         ## build/heaptap_VERSION_ARCH.deb for Debian and Ubuntu (no root)
	$(Q)$(PACK_ENV) MAKE="$(MAKE)" packaging/deb.sh

rpm: dist                        ## build/heaptap-VERSION.ARCH.rpm for Fedora, of the last commit (no root)
	$(Q)$(PACK_ENV) packaging/rpm.sh
