#!/bin/sh
# 100,000 sessions: several MariaDB servers, one assay process for each, and one result. Options and limits: docs/many-connections.md.
set -e
cd "$(dirname "$0")/.."
exec cargo xtask bench connections "$@"
