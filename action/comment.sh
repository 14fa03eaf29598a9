#!/usr/bin/env bash
# Writes the answer as a comment of the pull request: the first time a new one, later the same one again.
#
# Reads MARKDOWN (a file), NUMBER (of the pull request), TITLE and TOKEN. Needs curl and jq, which GitHub's runners have.
set -euo pipefail

# An invisible line by which the comment is found again.
marker="<!-- assay compare: $TITLE -->"
comments="${GITHUB_API_URL:-https://api.github.com}/repos/$GITHUB_REPOSITORY/issues"

# The token goes through stdin: the command line of a process can be read by others.
api() {
    local method=$1 url=$2
    shift 2
    curl --silent --show-error --fail-with-body --request "$method" --header 'Accept: application/vnd.github+json' \
        --header @- "$@" "$url" <<<"Authorization: Bearer $TOKEN"
}

page=1
known=
while [ -z "$known" ]; do
    found=$(api GET "$comments/$NUMBER/comments?per_page=100&page=$page")
    known=$(jq -r --arg marker "$marker" 'map(select(.body | startswith($marker))) | .[0].id // empty' <<<"$found")
    if [ "$(jq length <<<"$found")" -lt 100 ]; then break; fi
    page=$((page + 1))
done

body=$(mktemp)
trap 'rm -f "$body"' EXIT
# A comment has at most 65,536 characters.
jq -Rs --arg marker "$marker" '{body: (($marker + "\n" + .)[:65000])}' "$MARKDOWN" >"$body"
if [ -n "$known" ]; then
    api PATCH "$comments/comments/$known" --data "@$body" >/dev/null
else
    api POST "$comments/$NUMBER/comments" --data "@$body" >/dev/null
fi
