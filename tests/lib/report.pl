# SPDX-License-Identifier: GPL-2.0-or-later
# For scripts that read JSON reports in Perl: require it.
use strict;
use warnings;

# The names of the functions of $stack, a caller of $report, innermost first; undef for those that are not known.
sub functions_of {
	my ($report, $stack) = @_;
	return () unless defined $stack->{backtrace};
	return map {
		my $function = $report->{frames}[$_]{function};
		defined $function ? $report->{functions}[$function]{name} : undef;
	} @{ $report->{backtraces}[$stack->{backtrace}] };
}

1;
