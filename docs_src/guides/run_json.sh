set -eu
export EVERTURN_MODEL=offline:demo

# --8<-- [start:json]
everturn run --json "What time is it?" |
    jq -r '.event | select(.type == "CallStarted") | .tool, .arguments'
# --8<-- [end:json]
