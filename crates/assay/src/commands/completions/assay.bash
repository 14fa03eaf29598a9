_assay() {
    local IFS=$'\n'
    COMPREPLY=($(assay completions bash "--line=${COMP_LINE:0:COMP_POINT}" "--text=$2" 2>/dev/null))
    # A folder or an option with a value goes on.
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/=] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o bashdefault -o nosort -F _assay assay 2>/dev/null || complete -o bashdefault -F _assay assay
