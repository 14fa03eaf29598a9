--- Isolation levels that `assay.history` checks, from the weakest.
return {
  "read-uncommitted", "read-committed", "repeatable-read", "snapshot-isolation", "serializable",
  "strong-session-serializable", "strict-serializable",
}
