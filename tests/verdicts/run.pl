#!/usr/bin/env perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The verdicts of heaptap, memcheck and LeakSanitizer on the shapes of leaks, as a table in Markdown (root): run.pl
# [SHAPE...]. Each cell has the blocks called definite, indirect, possible, reachable. Fails if a verdict of heaptap is
# not the one that the shape is made for, but for the shapes in %known.
use strict;
use warnings;
use File::Temp qw(tempdir);
use FindBin;
use JSON::PP;
require "$FindBin::Bin/../lib/report.pl";

my $o = $ENV{O} || 'build';
my $heaptap = $ENV{HEAPTAP} || "$o/heaptap";
my $dir = tempdir(CLEANUP => 1);
my @kinds = qw(definite indirect possible reachable);
my %kind_of = (definitely => 'definite', indirectly => 'indirect', possibly => 'possible', still => 'reachable');
my $role = qr/^(?:leader|behind|maybe|held)(?:_of_pool)?$/;

# Shapes whose verdict is another one, and why.
my %known = (
	lost_pool_block => 'a block around other blocks is unsure',
);

sub slurp { open my $in, '<', $_[0] or return ''; local $/; return scalar <$in>; }

# A cell: blocks of each kind, and the bytes, to compare.
sub cell {
	my ($sums) = @_;
	my @parts = map { $sums->{$_} && $sums->{$_}[0] ? "$_ $sums->{$_}[0]" : () } @kinds;
	return @parts ? join(', ', @parts) : '-';
}
sub bytes { my ($sums) = @_; return join ' ', map { $sums->{$_} ? $sums->{$_}[1] : 0 } @kinds; }

sub add {
	my ($sums, $kind, $blocks, $bytes) = @_;
	$sums->{$kind}[0] += $blocks;
	$sums->{$kind}[1] += $bytes;
}

sub truth {
	my %sums;
	add(\%sums, $1, $2, $3) while $_[0] =~ /^expect (\w+) (\d+) (\d+) /mg;
	return \%sums;
}

sub by_heaptap {
	my ($program, $shape) = @_;
	unlink "$dir/report.json";
	system("timeout -k 5 120 '$heaptap' run -q --max-pause 60s -o '$dir/report.json' -- '$program' $shape >'$dir/out' 2>'$dir/err'") == 0
		or die "run.pl: heaptap: $shape: " . slurp("$dir/err");
	my $report = decode_json(slurp("$dir/report.json"));
	my %sums;
	for my $stack (@{$report->{processes}[0]{stacks}}) {
		next if !grep { ($_ // '') =~ $role } functions_of($report, $stack);
		add(\%sums, $_, $stack->{$_}{blocks} // 0, $stack->{$_}{bytes} // 0) for @kinds;
	}
	return \%sums;
}

sub by_memcheck {
	my ($program, $shape) = @_;
	my (%sums, @record);
	# A probe in the dynamic linker, of a heaptap that follows children, kills valgrind: try again.
	for (1 .. 5) {
		system("timeout -k 5 60 valgrind --leak-check=full --show-leak-kinds=all --leak-check-heuristics=all --num-callers=20 "
			. "--log-file='$dir/memcheck' '$program' $shape >/dev/null 2>&1");
		last if slurp("$dir/memcheck") =~ /total heap usage: [1-9]/;
		sleep 1;
	}
	for (split /\n/, slurp("$dir/memcheck")) {
		s/(?<=\d),(?=\d)//g;
		if (/ ([\d]+) (?:\((\d+) direct, \d+ indirect\) )?bytes in (\d+) blocks are (definitely|indirectly|possibly|still)/) {
			@record = ($kind_of{$4}, $3, $2 // $1);
		} elsif (@record && /(?:at|by) 0x[0-9A-F]+: (\w+)/ && $1 =~ $role) {
			add(\%sums, @record);
			@record = ();
		} elsif (/^==\d+== *$/) {
			@record = ();
		}
	}
	return \%sums;
}

sub by_lsan {
	my ($program, $shape) = @_;
	my (%sums, @record);
	return undef if !-x "$program-lsan";
	system("LSAN_OPTIONS=detect_leaks=1 timeout -k 5 60 '$program-lsan' $shape >/dev/null 2>'$dir/lsan'");
	for (split /\n/, slurp("$dir/lsan")) {
		if (/^(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object/) {
			@record = ($1 eq 'Direct' ? 'definite' : 'indirect', $3, $2);
		} elsif (@record && /^\s+#\d+ \S+ in (\w+)/ && $1 =~ $role) {
			add(\%sums, @record);
			@record = ();
		}
	}
	return \%sums;
}

my ($wrong, $nr) = (0, 0);
my @agreed;
my %wanted = map { $_ => 1 } @ARGV;
print "| shape | heaptap | memcheck | LeakSanitizer |\n|---|---|---|---|\n";
for my $program ("$o/tests/verdicts/shapes", "$o/tests/verdicts/shapes_cpp") {
	for my $shape (split /\n/, `'$program'`) {
		next if %wanted && !$wanted{$shape};
		my $must = truth(scalar `'$program' $shape`);
		my ($ours, $lsan) = (by_heaptap($program, $shape), by_lsan($program, $shape));
		my $is_right = cell($ours) eq cell($must) && bytes($ours) eq bytes($must);
		my $mark = $is_right ? '' : ', must be ' . cell($must) . ($known{$shape} ? " ($known{$shape})" : ' **wrong**');
		my @others = (cell(by_memcheck($program, $shape)), $lsan ? cell($lsan) : 'not built');
		# LeakSanitizer shows only what is lost.
		my @right = (cell($must), cell({ map { $_ => $must->{$_} } qw(definite indirect) }));
		$nr++;
		$wrong += !$is_right && !$known{$shape};
		if ($is_right && "@others" eq "@right") {
			push @agreed, $shape;
			next;
		}
		print "| $shape | ", join(' | ', cell($ours) . $mark, map { $others[$_] eq $right[$_] ? '=' : $others[$_] } 0, 1), " |\n";
	}
}
print "\nAll three agree: ", join(', ', @agreed), "\n";
printf "\n%d shapes, %d wrong\n", $nr, $wrong;
exit($wrong > 0);
