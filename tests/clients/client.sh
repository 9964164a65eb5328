#!/bin/sh
# A client of `callmark stdio` in a POSIX shell: client.sh COMMAND ARGUMENT...
#
# What needs no answer first goes through a pipe; a session, in which each side asks the other, through two named pipes.
set -eu

printf '%s\n' \
  '{"jsonrpc":"2.0","id":1,"method":"detect","params":{"text":"<tool_call>{\"name\":\"f\"}</tool_call>"}}' \
  '{"jsonrpc":"2.0","id":2,"method":"stream/open","params":{"stream":"s"}}' \
  '{"jsonrpc":"2.0","id":3,"method":"stream/feed","params":{"stream":"s","text":"[CALL: f(a"}}' \
  '{"jsonrpc":"2.0","id":4,"method":"stream/feed","params":{"stream":"s","text":"=1)]"}}' \
  '{"jsonrpc":"2.0","id":5,"method":"stream/close","params":{"stream":"s"}}' |
  "$@"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkfifo "$place/in" "$place/out"
"$@" <"$place/in" >"$place/out" &
exec 3>"$place/in" 4<"$place/out"

tools='[{"name":"date","mode":"read","parameters":{}}]'
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"session/open","params":{"session":"s","events":false,"tools":'"$tools"'}}' >&3
printf '%s\n' '{"jsonrpc":"2.0","id":2,"method":"session/run","params":{"session":"s","text":"Which day is it?"}}' >&3
answer='[CALL: date()]'
while read -r line <&4; do
  id=$(printf '%s\n' "$line" | sed -n 's/.*"id":\("[^"]*"\).*/\1/p')
  case $line in
  *'"method":"model/generate"'*)
    printf '{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}\n' "$id" "$answer" >&3
    answer='It is Sunday.'
    ;;
  *'"method":"tool/invoke"'*)
    printf '%s\n' "$line" | grep -q '"name":"date"'
    printf '{"jsonrpc":"2.0","id":%s,"result":"Sunday"}\n' "$id" >&3
    ;;
  *'"id":2,'*)
    printf '%s\n' "$line"
    break
    ;;
  esac
done
exec 3>&-
wait
