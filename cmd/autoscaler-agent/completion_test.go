package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/localapi"
)

// asMain tells the test binary to be autoscaler-agent, for a shell that calls it.
const asMain = "RUN_AS_AUTOSCALER_AGENT"

func TestMain(m *testing.M) {
	completionLimit = time.Hour
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// answering serves answers by path on a unix socket, as the running agent does.
func answering(t *testing.T, answers map[string]any) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // a socket's path is at most 107 bytes: t.TempDir may be longer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := answers[r.URL.RequestURI()]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(v)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return socket
}

// completed is what a shell would offer after the words; the last may be half written.
func completed(t *testing.T, words ...string) (offered []string, directive string) {
	t.Helper()
	var out, errout bytes.Buffer
	if code := execute(t.Context(), append([]string{"__complete"}, words...), &out, &errout); code != exitOK {
		t.Errorf("%v: code %d, %s", words, code, errout.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, line := range lines[:len(lines)-1] {
		word, _, _ := strings.Cut(line, "\t")
		offered = append(offered, word)
	}
	return offered, lines[len(lines)-1]
}

func TestCompletion(t *testing.T) {
	socket := answering(t, map[string]any{
		localapi.NamesPath + "?kind=pod&prefix=default%2Fw": []string{"default/web-0", "default/web-1"},
		localapi.NamesPath + "?kind=node&prefix=":           []string{"n1"},
		localapi.NamesPath + "?kind=csr&prefix=csr-":        []string{"csr-8vnps"},
	})
	const noFiles = ":4"
	for _, c := range []struct {
		words     []string
		want      []string
		directive string
	}{
		{[]string{"st"}, []string{"status"}, noFiles},
		{[]string{"m"}, nil, noFiles}, // man is hidden
		{[]string{"node", ""}, []string{"replace", "restore"}, noFiles},
		{[]string{"status", "--o"}, []string{"--output"}, noFiles},
		{[]string{"status", "--output", ""}, []string{"table", "json", "yaml"}, noFiles},
		{[]string{"check", "--env-file", ""}, nil, ":0"},
		{[]string{"completion", ""}, []string{"bash", "fish", "zsh"}, noFiles},
		{[]string{"iam-policy", ""}, []string{"leader", "worker"}, noFiles},
		{[]string{"openstack-rules", ""}, []string{"nova", "magnum"}, noFiles},
		{[]string{"userdata", "render", "--cloud", ""}, []string{"aws", "openstack"}, noFiles},
		{[]string{"replay", ""}, []string{"json.gz"}, ":8"}, // files by extension
		{[]string{"explain", ""}, []string{"pod", "node", "group", "csr", "instance"}, noFiles},
		{[]string{"explain", "--socket", socket, "pod", "default/w"}, []string{"default/web-0", "default/web-1"}, noFiles},
		{[]string{"explain", "--socket", socket, "po/default/w"}, []string{"po/default/web-0", "po/default/web-1"}, noFiles},
		{[]string{"explain", "--socket", socket, "no", ""}, []string{"n1"}, noFiles},
		{[]string{"explain", "csr", "--socket=" + socket, "csr-"}, []string{"csr-8vnps"}, noFiles},
		{[]string{"explain", "--socket", socket, "group", ""}, nil, noFiles},            // the agent answers 404
		{[]string{"explain", "--socket", "/does/not/exist", "pod", ""}, nil, noFiles},   // no agent
		{[]string{"explain", "--env-file", "/does/not/exist", "pod", ""}, nil, noFiles}, // no configuration
		{[]string{"node", "restore", "--state-dir", "/does/not/exist", ""}, nil, noFiles},
		{[]string{"version", ""}, nil, noFiles},
	} {
		got, directive := completed(t, c.words...)
		slices.Sort(got)
		want := slices.Clone(c.want)
		slices.Sort(want)
		if !slices.Equal(got, want) || directive != c.directive {
			t.Errorf("%v: %v %s, want %v %s", c.words, got, directive, want, c.directive)
		}
	}
}

// TestCompletionOfAnAgentThatHangs: the shell is not held up, and nothing is offered.
func TestCompletionOfAnAgentThatHangs(t *testing.T) {
	defer func(limit time.Duration) { completionLimit = limit }(completionLimit)
	completionLimit = 50 * time.Millisecond
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := net.Listen("unix", filepath.Join(dir, "s")) // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if got, directive := completed(t, "explain", "--socket", l.Addr().String(), "node", ""); len(got) > 0 || directive != ":4" {
		t.Errorf("%v %s", got, directive)
	}
}

// TestCompletionInBash: the script, in a real bash, offers what the binary offers.
func TestCompletionInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: its script is not run")
	}
	var script, errout bytes.Buffer
	if code := execute(t.Context(), []string{"completion", "bash"}, &script, &errout); code != exitOK || errout.Len() > 0 {
		t.Fatalf("code %d: %s", code, errout.String())
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "autoscaler-agent")); err != nil {
		t.Fatal(err)
	}
	socket := answering(t, map[string]any{localapi.NamesPath + "?kind=node&prefix=ip-": []string{"ip-10-0-0-1", "ip-10-0-0-2"}})
	for line, want := range map[string]string{
		"autoscaler-agent expl": "explain",
		"autoscaler-agent explain node --socket " + socket + " ip-": "ip-10-0-0-1 ip-10-0-0-2",
		"autoscaler-agent explain pod --socket /none default/w":     "",
	} {
		// This function stands for the one of the package bash-completion.
		text := `_init_completion() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
` + script.String() + `
COMP_WORDS=(` + line + `); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE='` + line + `'; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
__start_autoscaler-agent; for c in "${COMPREPLY[@]}"; do echo "$c"; done`
		cmd := exec.CommandContext(t.Context(), bash, "--norc", "-c", text)
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), asMain + "=1"}
		out, err := cmd.Output() // bash complains that compopt is called outside of a completion
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != want {
			t.Errorf("%s: %v, offered %q, want %q", line, err, got, want)
		}
	}
}

// TestScriptsOfShells: every shell's script names the command.
func TestScriptsOfShells(t *testing.T) {
	for shell, want := range map[string]string{"bash": "complete -o default", "zsh": "#compdef autoscaler-agent", "fish": "complete -c autoscaler-agent"} {
		var out, errout bytes.Buffer
		if code := execute(t.Context(), []string{"completion", shell}, &out, &errout); code != exitOK || !strings.Contains(out.String(), want) {
			t.Errorf("%s: code %d, no %q in the script", shell, code, want)
		}
	}
}
