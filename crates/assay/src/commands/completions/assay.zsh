#compdef assay

_assay() {
    local -a found open plain
    found=(${(f)"$(assay completions zsh "--line=${(j: :)${(@q)words[1,CURRENT]}}" 2>/dev/null)"})
    # A folder goes on.
    open=(${(M)found:#*/:*})
    plain=(${found:#*/:*})
    (( $#found )) || { _files; return }
    (( $#plain )) && _describe -V assay plain
    (( $#open )) && _describe -V assay open -S ''
}

if [[ $funcstack[1] == _assay ]]; then
    _assay "$@"
else
    compdef _assay assay
fi
