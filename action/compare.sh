#!/usr/bin/env bash
# Compares the records and writes the answer as Markdown: a file, and the summary of the job. Succeeds also if the
# comparison fails: the comment comes first, then the status.
#
# Reads BASELINE, CANDIDATE, FAIL_IF, FAIL_IF_UNSURE, MARGIN and TITLE.
set -euo pipefail

options=(--margin "$MARGIN")
while IFS= read -r condition; do
    if [ -n "${condition// /}" ]; then options+=(--fail-if "$condition"); fi
done <<<"$FAIL_IF"
if [ "$FAIL_IF_UNSURE" = true ]; then options+=(--fail-if-unsure); fi

markdown="$RUNNER_TEMP/assay-compare-$$.md"
said="$RUNNER_TEMP/assay-compare-$$.txt"
status=0
# The patterns are the user's: they are meant to be expanded.
# shellcheck disable=SC2086
assay compare --baseline $BASELINE --candidate $CANDIDATE "${options[@]}" >"$said" 2>&1 || status=$?
# Whether the trials are too few to tell: of a condition, or at all. That is neither a pass nor a failure.
unsure=false
if [ "$status" = 0 ]; then
    # shellcheck disable=SC2086
    assay compare --baseline $BASELINE --candidate $CANDIDATE "${options[@]}" --fail-if-unsure >/dev/null 2>&1 ||
        unsure=true
    if head -n 1 "$said" | grep -qE '^(cannot tell|no verdict)'; then unsure=true; fi
fi
case $status,$unsure in
    0,true) answer='cannot tell' ;;
    0,*) answer='passed' ;;
    1,*) answer='**failed**' ;;
    *) answer="could not compare (exit code $status)" ;;
esac
{
    echo "### $TITLE: $answer"
    echo
    echo '````text'
    cat "$said"
    echo '````'
    # Why, if something differs. A failure here is not one of the comparison.
    # shellcheck disable=SC2086
    if [ "$status" -le 1 ] && why=$(assay explain --baseline $BASELINE --candidate $CANDIDATE --margin "$MARGIN" 2>&1); then
        echo
        echo '<details><summary>Why</summary>'
        echo
        echo '````text'
        echo "$why"
        echo '````'
        echo
        echo '</details>'
    fi
} >"$markdown"
rm "$said"
cat "$markdown" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
{
    echo "markdown=$markdown"
    echo "status=$status"
} >>"$GITHUB_OUTPUT"
