set -u
export EVERTURN_MODEL=offline:demo

# --8<-- [start:first]
everturn run "What time is it?" | sed -n 1p
printf 'Lunch is at noon.\n' | everturn run "What is this?" | sed -n 1p | cut -c 56-
# --8<-- [end:first]

# --8<-- [start:denied]
everturn run "Note that lunch is at noon" | sed -n 1p
everturn run "Note that lunch is at noon" >/dev/null 2>&1 || echo "exit code $?"
# --8<-- [end:denied]

# --8<-- [start:allowed]
everturn run "Note that lunch is at noon" --allow 'take_note(text=lunch*)' | sed -n 1p
# --8<-- [end:allowed]

# --8<-- [start:key]
first=$(everturn run --store talks.db --idempotency-key monday "What time is it?")
again=$(everturn run --store talks.db --idempotency-key monday "What time is it?")
[ "$first" = "$again" ] && echo "sent once, printed twice"
# --8<-- [end:key]

# --8<-- [start:wait]
kept="--store talks.db --session lunch"
everturn run $kept --wait "Note that lunch is at noon" 2>&1 || echo "exit code $?"
everturn run $kept --resume --allow take_note | sed -n 1p
# --8<-- [end:wait]

# --8<-- [start:saved]
everturn run "Hello" >/dev/null
everturn run -c "Hello again" >/dev/null
everturn logs show | grep '^Hello'
# --8<-- [end:saved]
