#!/bin/sh
# 100,000 sessions: several MariaDB servers, a fleet with an agent for each, and one record. Options and limits: docs/many-connections.md.
set -e
cd "$(dirname "$0")/.."
exec cargo xtask bench connections "$@"
