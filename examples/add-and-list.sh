#!/bin/sh
# Adds two plants and prints the whole list, page by page. Needs curl 7.71 or newer.
# Usage: BASE_URL=http://127.0.0.1:3000 TOKEN=plant_… sh add-and-list.sh
set -eu

headers=$(mktemp)
answer=$(mktemp)
trap 'rm -f "$headers" "$answer"' EXIT

# Sends a request, and retries it after a network error or a temporary error such as 503. This is safe for additions,
# because each has an id.
ask() {
  status=$(curl --silent --show-error --max-time 10 --retry 5 --retry-all-errors --retry-max-time 60 \
    --write-out '%{http_code}' --output "$answer" --dump-header "$headers" -H "Authorization: Bearer $TOKEN" "$@")
  case $status in
    2*) cat "$answer" && echo ;;
    *) cat "$answer" >&2 && exit 1 ;;
  esac
}

# Generates 48 random bits. Keep the id with the plant to be able to retry later.
random_id() {
  od -An -N6 -tu8 /dev/urandom | tr -d ' '
}

add() {
  ask "$BASE_URL/plants" -H 'Content-Type: application/json' \
    -d "{\"name\": \"$1\", \"tag\": \"$2\", \"id\": $(random_id)}"
}

add 'Black alder' 'Alnus glutinosa'
add 'Grey alder' 'Alnus incana'

page="/plants?limit=100"
while [ -n "$page" ]; do
  ask "$BASE_URL$page"
  # The link to the next page starts with the base path, which BASE_URL already contains: use only its query. The file
  # has the headers of all attempts: use the last link.
  query=$(sed -n 's/^[Ll]ink: <[^?]*\(?[^>]*\)>; rel="next".*/\1/p' "$headers" | tail -n 1)
  page=${query:+/plants$query}
done
