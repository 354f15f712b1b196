#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Ctrl-C while heaptap works on a large heap: it ends at once, or the console goes on, and the target is not held.

load ../lib/common

setup() {
	cd "$BATS_TEST_TMPDIR" || return 1
	make_worked
}

# A signal comes when heaptap has worked for so many ticks of CPU time since it was looked at, however fast it is.
# The jobs take several times as long.
make_worked() {
	cat >worked <<'END'
#!/usr/bin/perl
# worked PID begin: remember its CPU time; worked PID TICKS: wait until it has had so much more; fails if it has ended
sub cpu {
	open(my $f, "<", "/proc/$ARGV[0]/stat") or exit 1;
	my ($state, @word) = split " ", <$f> =~ s/.*\) //r;
	exit 1 if $state =~ /[ZX]/;
	return $word[10] + $word[11];
}
# A look must not come late because the machine is busy.
setpriority(0, 0, -20);
if ($ARGV[1] eq "begin") {
	open(my $f, ">", "begun") or die;
	print $f cpu();
	exit 0;
}
open(my $f, "<", "begun") or die;
my $end = <$f> + $ARGV[1];
select(undef, undef, undef, 0.01) while cpu() < $end;
END
	chmod +x worked
}

# at_rest: no thread of the target is stopped
at_rest() { ! grep -qE '^State:.*[tT] \(' "/proc/$TARGET"/task/*/status; }

# Blocks that take a scan some 0.5 s.
MANY=1000000

# bats test_tags=full
@test "broken off: scan of a process that nobody traces" {
	stepping
	step "alloc $MANY 16"
	# Without job control bash would have the signal ignored.
	start perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' "$HEAPTAP" scan --max-pause 60s "$TARGET"
	echo 0 >begun
	./worked "$PID" 10
	kill -INT "$PID"
	ended "$PID" 130
	wait_for at_rest
	step "alloc 1 1"
	untouched "$TARGET"
}

# bats test_tags=full
@test "broken off: scan and why of the console, which goes on and judges again" {
	stepping
	mkfifo pid
	# The console's PID is that of the shell which becomes it.
	"$ROOT/tests/lib/talk.py" bash -c 'echo $$ >tap; exec "$0" console --max-pause 60s "$1"' "$HEAPTAP" "$TARGET" <<SCRIPT &
expect heaptap> 
run echo ready >'$PWD/pid'; read -r _ <'$PWD/pid'
send wait allocs>$((MANY - 1)) 60s
expect heaptap> 
run ./worked \$(cat tap) begin
send scan
run ./worked \$(cat tap) 10
type \\x03
expect heaptap> 
send status
expect the memory was not searched
expect heaptap> 
run ./worked \$(cat tap) begin
send why
run ./worked \$(cat tap) 10
type \\x03
expect heaptap> 
send scan
expect no leaks
expect heaptap> 
send quit
end 0
SCRIPT
	local talk=$!
	read -r _ <pid
	step "alloc $MANY 16"
	echo go >pid
	wait "$talk"
	at_rest
	step "alloc 1 1"
	untouched "$TARGET"
}

# list_places NR: NR callers with ten places each of heaptap itself, whose debug information has a name for each
list_places() {
	echo 'process 77 big /nowhere/big'
	echo "map 77 0x400000 0x1400000 0 $HEAPTAP"
	awk -v nr="$1" 'BEGIN {
		for (id = 2; id < nr + 2; id++) {
			line = "stack " id " 77 complete"
			for (i = 0; i < 10; i++)
				line = line sprintf(" %#x", 4194304 + 262144 + (id * 10 + i) * 7 % 524288)
			print line "\nalloc 77 1 malloc " sprintf("%#x", id * 4096) " 16 " id " " id * 10000
		}
	}'
}

# bats test_tags=full
@test "broken off: names of a large report of the console, as text and as files" {
	list_places 40000 >l.txt
	"$ROOT/tests/lib/talk.py" bash -c 'echo $$ >tap; exec "$0" console l.txt' "$HEAPTAP" <<SCRIPT
expect heaptap> 
run ./worked \$(cat tap) begin
send report x.json
run ./worked \$(cat tap) 10
type \x03
expect heaptap> 
run ./worked \$(cat tap) begin
send report y.html
run ./worked \$(cat tap) 10
type \x03
expect heaptap> 
send set top 0
expect heaptap> 
run ./worked \$(cat tap) begin
send report
run ./worked \$(cat tap) 10
type \x03
expect heaptap> 
send status
expect 40,000 blocks
expect heaptap> 
send quit
end 0
SCRIPT
	[ ! -e x.json ] && [ ! -e y.html ]
}

# bats test_tags=full
@test "broken off: goto of the console, which shows what it showed before" {
	[ "$(id -u)" -eq 0 ] || skip "not root"
	# Reading this many events takes several times as long as the wait.
	"$HEAPTAP" run -q --no-scan --depth 2 -w r.heaptap -o r.json -- "$T/threads" 2 700000 >out
	local early=$(($(jq .duration_ns r.json) / 5))ns
	"$HEAPTAP" console -q --execute "goto $early" --execute 'status' r.heaptap >before
	"$ROOT/tests/lib/talk.py" bash -c 'echo $$ >tap; exec "$0" console r.heaptap 2>said' "$HEAPTAP" <<SCRIPT
expect heaptap> 
send goto $early
expect heaptap> 
run ./worked \$(cat tap) begin
send goto end
run ./worked \$(cat tap) 10
type \x03
expect heaptap> 
send status > after
expect heaptap> 
run ./worked \$(cat tap) begin
send goto 1h
run ./worked \$(cat tap) 10
type \x03
expect heaptap> 
send status > again
expect heaptap> 
send quit
end 0
SCRIPT
	diff before after
	diff before again
	# Beside a load heaptap may have said that it is busy before it looked.
	sed -i '/another signal ends heaptap/d' said
	fails grep -v % said
}
