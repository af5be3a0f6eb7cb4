set -eu
# --8<-- [start:api]
URL=${URL:-http://127.0.0.1:8000}
TOKEN=${TOKEN:-$(cat ~/.local/share/everturn/operator.token)}

api() { # api PATH [OPTIONS OF CURL]
    path=$1 && shift
    curl -sS "$URL$path" -H "Authorization: Bearer $TOKEN" "$@" && echo
}
field() { sed -E "s/.*\"$1\":\"([^\"]*)\".*/\1/"; }
# --8<-- [end:api]

# --8<-- [start:begin]
sent=$(api /api/sessions --json '{"text": "Note that lunch is at noon"}')
echo "$sent"
session=$(echo "$sent" | field session)
turn=$(echo "$sent" | field turn)
# --8<-- [end:begin]

# --8<-- [start:asked]
until api "/api/sessions/$session/gates" | grep -q '"hash"'; do sleep 0.1; done
asked=$(api "/api/sessions/$session/gates")
echo "$asked" | field tool
echo "$asked" | field why
# --8<-- [end:asked]

# --8<-- [start:answer]
gate=$(echo "$asked" | field id)
hash=$(echo "$asked" | field hash)
api "/api/sessions/$session/gates/$gate/answer" \
    --json "{\"hash\": \"$hash\", \"allow\": \"once\"}" -w '%{http_code}'
# --8<-- [end:answer]

# --8<-- [start:watch]
api "/api/sessions/$session/turns/$turn/events" -N |
    sed -n -E 's/.*"type":"((Turn|Gate|Call|Permission)[A-Za-z]*)",.*/\1/p' |
    grep -v Delta
# --8<-- [end:watch]

# --8<-- [start:resume]
api "/api/sessions/$session/turns/$turn/events?after=13:29" -N |
    head -n 2 | sed 's/"type".*"offset"/… "offset"/; s/, so .*/ …/'
# --8<-- [end:resume]

# --8<-- [start:again]
key='Idempotency-Key: monday-1'
api /api/sessions -H "$key" --json '{"text": "What time is it?"}'
api /api/sessions -H "$key" --json '{"text": "What time is it?"}'
api /api/sessions -H "$key" --json '{"text": "Why?"}' | field code
# --8<-- [end:again]

# --8<-- [start:busy]
messages="/api/sessions/$session/messages"
api "$messages" --json '{"text": "Note that it rains"}' >/dev/null
api "$messages" --json '{"text": "What time is it?", "busy": "reject"}' | field code
# --8<-- [end:busy]
