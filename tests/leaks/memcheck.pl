#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Compares the verdicts of heaptap and memcheck on one program, by stack: memcheck.pl [-f FRAMES] [-v] PROGRAM... (root).
# Stacks are compared by the names of their FRAMES innermost functions, 4 by default. Prints the stacks that differ, and
# a line of sums. Fails if heaptap calls more blocks of a stack lost than memcheck does.
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use JSON::PP;
require "$FindBin::Bin/../lib/report.pl";

my ($frames, $verbose) = (4, 0);
while (@ARGV && $ARGV[0] =~ /^-([fv])$/) {
	shift @ARGV;
	$1 eq 'f' ? ($frames = shift @ARGV) : ($verbose = 1);
}
my @kinds = qw(definite indirect possible reachable);
my $heaptap = $ENV{HEAPTAP} || 'build/heaptap';
my $dir = tempdir(CLEANUP => 1);

# A name of a function that both tools have: without scopes, arguments, versions and marks of aliases; "?" if unnamed.
sub short {
	my ($name) = @_;
	return '?' if !defined $name || $name eq '???' || $name =~ /\+0x/;
	1 while $name =~ s/<[^<>]*>//g;
	$name =~ s/\(.*//s;
	$name =~ s/@.*//;
	$name =~ s/\.(constprop|part|isra|cold).*//;
	$name =~ s/^.* (?=\S+$)// unless $name =~ /operator/;
	$name =~ s/.*:://;
	$name =~ s/^_+//;
	$name =~ s/^(GI_+|IO_+|libc_+|new_+)*|_impl$//g;
	# memcheck does not know clone3.
	return $name eq 'clone3' ? 'clone' : $name;
}

sub key { return join ' < ', grep { defined } @_[0 .. $frames - 1]; }

# {stack}{verdict} = [blocks, bytes]
sub add {
	my ($sums, $key, $kind, $blocks, $bytes) = @_;
	return unless $blocks;
	$sums->{$key}{$kind}[0] += $blocks;
	$sums->{$key}{$kind}[1] += $bytes;
}

sub of_memcheck {
	my (%sums, $kind, $blocks, $bytes, @stack);
	my $end = sub {
		# heaptap knows that glibc holds the tables of threads by pointers to their second entry.
		$kind = 'reachable' if $kind && $kind eq 'possible' && grep { $_ eq 'dl_allocate_tls' } @stack;
		add(\%sums, key(@stack), $kind, $blocks, $bytes) if $kind;
		undef $kind;
		@stack = ();
	};
	system("valgrind", qw(--child-silent-after-fork=yes --run-libc-freeres=no --run-cxx-freeres=no --leak-check=full
		--show-leak-kinds=all --leak-resolution=high --show-below-main=yes --leak-check-heuristics=all --num-callers=30), "--log-file=$dir/memcheck", "--", @ARGV);
	open(my $log, '<', "$dir/memcheck") or die "memcheck.pl: no log of memcheck\n";
	while (<$log>) {
		s/^==\d+== ?//;
		if (/^([\d,]+) (?:\(.*\) )?bytes in ([\d,]+) blocks are (definite|indirect|possib|still reachable)/) {
			$end->();
			($bytes, $blocks, $kind) = ($1, $2, $3);
			# "300 (100 direct, 200 indirect) bytes"
			$bytes = $1 if /\(([\d,]+) direct/;
			s/,//g for $bytes, $blocks;
			$kind = { possib => 'possible', 'still reachable' => 'reachable' }->{$kind} || $kind;
		} elsif ($kind && /^\s+(?:at|by) 0x[0-9A-F]+: (.*) \((?:in )?[^()]*\)$/) {
			my $name = short($1);
			push @stack, $name unless !@stack && /vgpreload/;
		} else {
			$end->();
		}
	}
	$end->();
	return \%sums;
}

sub of_heaptap {
	my %sums;
	system($heaptap, qw(run -q -o), "$dir/report.json", "--", @ARGV);
	open(my $file, '<', "$dir/report.json") or die "memcheck.pl: no report of heaptap\n";
	local $/;
	my $report = decode_json(<$file>);
	my $process = $report->{processes}[-1];
	die "memcheck.pl: no verdict\n" unless $process->{scan};
	for my $stack (@{ $process->{stacks} }) {
		my $key = key(map { short($_) } functions_of($report, $stack));
		add(\%sums, $key, $_, $stack->{$_}{blocks}, $stack->{$_}{bytes}) for @kinds, 'unsure';
	}
	return \%sums;
}

sub text {
	my ($sum) = @_;
	return join(', ', map { "$_ $sum->{$_}[0]/$sum->{$_}[1]" } grep { $sum->{$_} } @kinds, 'unsure') || '-';
}

sub lost {
	my ($sum) = @_;
	my $nr = 0;
	$nr += $sum->{$_} ? $sum->{$_}[0] : 0 for qw(definite indirect);
	return $nr;
}

open(my $out, '>&', \*STDOUT);
open(STDOUT, '>', '/dev/null');
my ($theirs, $ours) = (of_memcheck(), of_heaptap());
my ($equal, $blocks, $stacks, $differ, $worse) = (0, 0, 0, 0, 0);
for my $key (sort keys %{ { %$theirs, %$ours } }) {
	my ($t, $o) = ($theirs->{$key} || {}, $ours->{$key} || {});
	my ($all_t, $all_o, $same) = (0, 0, 0);
	for my $kind (@kinds, 'unsure') {
		my ($a, $b) = map { $_->{$kind} ? $_->{$kind}[0] : 0 } $t, $o;
		$all_t += $a;
		$all_o += $b;
		$same += $a < $b ? $a : $b;
	}
	$stacks++;
	$blocks += $all_t > $all_o ? $all_t : $all_o;
	$equal += $same;
	# Skip stacks that only one of them has: there is nothing to compare.
	my $is_worse = $all_t == $all_o && lost($o) > lost($t);
	$worse++ if $is_worse;
	next if text($t) eq text($o);
	$differ++;
	print $out ($is_worse ? '!' : ' '), " $key\n    memcheck ", text($t), "\n    heaptap  ", text($o), "\n" if $verbose || $is_worse;
}
printf $out "memcheck: %s: %d stacks, %d differ; %d blocks, %.2f %% with the same verdict on the same stack; %d stacks worse\n",
	$ARGV[0], $stacks, $differ, $blocks, $blocks ? 100 * $equal / $blocks : 100, $worse;
exit($worse ? 1 : 0);
