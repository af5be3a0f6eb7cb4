set -eu
# --8<-- [start:run]
everturn run "What time is it?"
echo "It rains. Take a coat." | everturn run "What should I take?"
everturn run "What time is it?" --json | grep -c '"type"'
# --8<-- [end:run]
