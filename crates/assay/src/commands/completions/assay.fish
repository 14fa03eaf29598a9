complete --command assay --no-files --keep-order --arguments '(assay completions fish --line=(commandline --current-process --cut-at-cursor | string collect) 2>/dev/null)'
