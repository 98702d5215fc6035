package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

func completionCommand(_ context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("completion bash|zsh|fish", "Print a script that completes commands and the kinds of explain in a shell.", `  autoscaler-agent completion bash > /etc/bash_completion.d/autoscaler-agent
  source <(autoscaler-agent completion zsh)
  autoscaler-agent completion fish > ~/.config/fish/completions/autoscaler-agent.fish
`, errout)
	names, code, done := parseNames(fs, args, out, errout)
	if done {
		return code
	}
	var words []string
	for _, c := range commands() {
		words = append(words, c.name)
	}
	const kinds = "pod node group csr headroom"
	script := `_autoscaler_agent() {
  local cur=${COMP_WORDS[COMP_CWORD]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "` + strings.Join(words, " ") + `" -- "$cur"))
  elif [ "$COMP_CWORD" -eq 2 ] && [ "${COMP_WORDS[1]}" = explain ]; then
    COMPREPLY=($(compgen -W "` + kinds + `" -- "$cur"))
  fi
}
complete -o default -F _autoscaler_agent autoscaler-agent
`
	switch {
	case len(names) == 1 && names[0] == "bash":
		fmt.Fprint(out, script)
	case len(names) == 1 && names[0] == "zsh":
		fmt.Fprint(out, "autoload -U +X bashcompinit && bashcompinit\n"+script)
	case len(names) == 1 && names[0] == "fish":
		for _, c := range commands() {
			fmt.Fprintf(out, "complete -c autoscaler-agent -n __fish_use_subcommand -a %s -d '%s'\n", c.name, c.short)
		}
		fmt.Fprintf(out, "complete -c autoscaler-agent -n '__fish_seen_subcommand_from explain' -a '%s'\n", kinds)
	default:
		fmt.Fprint(errout, "autoscaler-agent completion: say for which shell: bash, zsh or fish\n")
		return exitUsage
	}
	return exitOK
}
