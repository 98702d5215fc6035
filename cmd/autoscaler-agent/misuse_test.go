package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// drawnMisuses is how many wrong command lines TestMisuse draws.
const drawnMisuses = 100

// TestMisuse draws command lines with one mistake each: whatever the command and the mistake,
// the exit code is that of a usage error, one line says what is wrong, and nothing is done.
func TestMisuse(t *testing.T) {
	seed := drawn.Seed(t)
	plain(t)
	r := rand.New(rand.NewPCG(seed, 45))
	kinds := map[string]int{}
	for n := range drawnMisuses {
		kind, args, want := misuse(r, n)
		kinds[kind]++
		var out, errout bytes.Buffer
		code := execute(t.Context(), args, &out, &errout)
		said := errout.String()
		if code != exitUsage || out.Len() > 0 || !strings.Contains(said, want) {
			t.Errorf("%s: %q: exit code %d, %q, %q; want %d and %q", kind, args, code, out.String(), said, exitUsage, want)
		}
		if strings.Count(said, "\n") != 1 && !strings.Contains(said, "Usage:") {
			t.Errorf("%s: %q is answered with several lines: %s", kind, args, said)
		}
	}
	if len(kinds) != len(mistakes) {
		t.Errorf("only these kinds were drawn: %v", kinds)
	}
}

// mistakes spoil the command line of c, where they apply: else the answer has no arguments.
// want is a part of the answer.
var mistakes = []struct {
	kind  string
	spoil func(r *rand.Rand, c *cobra.Command) (args []string, want string)
}{
	{"unknown flag", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		name := "--frobnicate-" + string(rune('a'+r.IntN(26)))
		return []string{name, "x"}, name
	}},
	{"misspelt flag", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		f := drawFlag(r, c, func(f *pflag.Flag) bool { return len(f.Name) > 5 })
		if f == nil {
			return nil, ""
		}
		name := f.Name[:2] + f.Name[3:]
		if c.Flags().Lookup(name) != nil {
			return nil, ""
		}
		return []string{"--" + name + "=x"}, "--" + name
	}},
	{"no value", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		f := drawFlag(r, c, func(f *pflag.Flag) bool { return f.NoOptDefVal == "" })
		if f == nil {
			return nil, ""
		}
		return []string{"--" + f.Name}, "--" + f.Name
	}},
	{"empty value", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		f := drawFlag(r, c, func(f *pflag.Flag) bool { return f.NoOptDefVal == "" && f.Value.Type() != "amounts" })
		if f == nil {
			return nil, ""
		}
		return append([]string{"--" + f.Name, ""}, arguments[c.Name()]...), "--" + f.Name
	}},
	{"wrong type", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		f := drawFlag(r, c, func(f *pflag.Flag) bool {
			return slices.Contains([]string{"bool", "int", "int64", "duration", "version", "label", "taint", "pair", "amounts", "format"}, f.Value.Type())
		})
		if f == nil {
			return nil, ""
		}
		return []string{"--" + f.Name + "=@many@"}, "--" + f.Name + " is "
	}},
	{"unknown word", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		f := drawFlag(r, c, func(f *pflag.Flag) bool { return f.Annotations["autoscaler-agent/words"] != nil })
		if f == nil {
			return nil, ""
		}
		return append([]string{"--" + f.Name, "windows"}, arguments[c.Name()]...), "--" + f.Name + " is \"windows\": use "
	}},
	{"both", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		f := drawFlag(r, c, func(f *pflag.Flag) bool { return len(f.Annotations[mutuallyExclusive]) > 0 })
		if f == nil {
			return nil, ""
		}
		set := strings.Fields(f.Annotations[mutuallyExclusive][r.IntN(len(f.Annotations[mutuallyExclusive]))])
		other := f.Name
		for other == f.Name {
			other = set[r.IntN(len(set))]
		}
		return append([]string{given(c, f.Name), given(c, other)}, arguments[c.Name()]...), " exclude each other: give one of them"
	}},
	{"control character", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		f := drawFlag(r, c, func(f *pflag.Flag) bool {
			return f.Annotations["autoscaler-agent/words"] == nil && slices.Contains([]string{"string", "file"}, f.Value.Type())
		})
		if f == nil {
			return nil, ""
		}
		return append([]string{"--" + f.Name + "=a\x1b[31mb"}, arguments[c.Name()]...), "has a control character"
	}},
	{"empty argument", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		list := slices.Clone(arguments[c.Name()])
		if len(list) == 0 {
			return nil, ""
		}
		list[len(list)-1] = []string{"", " "}[r.IntN(2)]
		return list, ""
	}},
	{"too many", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		return append(slices.Clone(arguments[c.Name()]), "one", "two", "three"), ""
	}},
	{"unknown command", func(r *rand.Rand, c *cobra.Command) ([]string, string) {
		if !c.HasSubCommands() {
			return nil, ""
		}
		return []string{"frobnicate"}, "there is no command"
	}},
}

const mutuallyExclusive = "cobra_annotation_mutually_exclusive"

// arguments are right ones, for the commands that want some.
var arguments = map[string][]string{"explain": {"pod", "a/b"}, "replay": {"x"}, "revoke": {"asa003"}, "lint": {"x"}, "completion": {"bash"}, "restore": {"n"}, "replace": {"n"}, "start": {"w"}, "pause": {"w"}, "resume": {"w"}, "back": {"w"}}

// given is a flag with a value that its type takes.
func given(c *cobra.Command, name string) string {
	f := c.Flags().Lookup(name)
	switch f.Value.Type() {
	case "bool":
		return "--" + name
	case "format":
		return "--" + name + "=json"
	case "version":
		return "--" + name + "=v1.36.3"
	}
	return "--" + name + "=A=b"
}

func drawFlag(r *rand.Rand, c *cobra.Command, fits func(*pflag.Flag) bool) *pflag.Flag {
	var list []*pflag.Flag
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && fits(f) {
			list = append(list, f)
		}
	})
	if len(list) == 0 {
		return nil
	}
	return list[r.IntN(len(list))]
}

// misuse draws a command and spoils it by the n-th kind of mistake, as often as kinds go round.
func misuse(r *rand.Rand, n int) (kind string, args []string, want string) {
	m := mistakes[n%len(mistakes)]
	for {
		c := newRoot()
		var words []string
		for c.HasSubCommands() && (m.kind != "unknown command" || r.IntN(2) == 0) {
			subs := c.Commands()
			c = subs[r.IntN(len(subs))]
			words = append(words, c.Name())
		}
		if args, want = m.spoil(r, c); args != nil {
			return m.kind, append(words, args...), want
		}
	}
}

// TestExclusiveFlags: flags that contradict each other are refused with both names. The table
// says which do; a pair that is no longer refused is missed here.
func TestExclusiveFlags(t *testing.T) {
	for _, line := range []string{
		"check --offline --kubelets", "check --offline --join", "check --print-env --print-schema", "check --print-env --offline", "check --print-schema --output=json", "check --print-env --env-file=x", "check --print-schema --join",
		"status --record=x --html=y", "status --watch --output=json", "status --record=x --output=yaml", "status --html=x --output=json", "status --watch --record=x",
		"explain --dry --socket=x pod a", "node restore --list --force", "node restore --list --dry-run", "node restore --list --kubeconfig=x",
		"install --renew --set=A_B=c", "uninstall --keep-cluster --kubeconfig=x", "userdata render --attest=a:1 --shared-token", "userdata render --api-server-version=v1.36.3 --kubeconfig=x", "userdata lint --api-server-version=v1.36.3 --kubeconfig=x f",
	} {
		var out, errout bytes.Buffer
		code := execute(t.Context(), strings.Fields(line), &out, &errout)
		if code != exitUsage || out.Len() > 0 || strings.Count(errout.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %q, %q", line, code, out.String(), errout.String())
		}
		for _, word := range strings.Fields(line) {
			if name, _, _ := strings.Cut(word, "="); strings.HasPrefix(name, "--") && !strings.Contains(errout.String(), name) {
				t.Errorf("%s: %s is not named: %s", line, name, errout.String())
			}
		}
	}
	for line, want := range map[string]string{
		"iam-policy worker --cluster=a --parameter=/x": "--cluster is for leader", "iam-policy worker --ebs-csi --parameter=/x": "--ebs-csi are for programs on the leader", "iam-policy --cluster=a --key-arn=arn:aws:kms:eu-west-1:123456789012:key/x": "--key-arn is the key of --parameter",
		"openstack-rules magnum --console": "--console is for nova", "userdata render --ca-file=x": "only --attest uses it",
	} {
		var out, errout bytes.Buffer
		if code := execute(t.Context(), strings.Fields(line), &out, &errout); code != exitUsage || out.Len() > 0 || !strings.Contains(errout.String(), want) {
			t.Errorf("%s: exit code %d, %q, %q", line, code, out.String(), errout.String())
		}
	}
}

// TestFlagsOfClusterAutoscaler: whoever copies the arguments of a Deployment is told what to
// write, or why nothing stands for the flag, wherever it is typed.
func TestFlagsOfClusterAutoscaler(t *testing.T) {
	plain(t)
	for _, c := range []struct {
		flag, want string
	}{
		{"--scale-down-unneeded-time=10m", "write AUTOSCALER_SCALING_UNNEEDED_FOR"},
		{"--cloud-provider=aws", "write AUTOSCALER_PROVIDER"},
		{"--estimator=binpacking", "is not supported here: one packer, judged against kube-scheduler"},
		{"--force-delete-unregistered-nodes", "is not supported here: a group at its minimum keeps the instance"},
		{"--frequent-loops-enabled=true", "is not needed here: rounds follow events; remove it"},
		{"--max-inactivity=10m", "use WatchdogSec= of the unit"},
	} {
		for _, words := range [][]string{{}, {"run"}, {"plan"}, {"check"}} {
			var out, errout bytes.Buffer
			code := execute(t.Context(), append(slices.Clone(words), c.flag), &out, &errout)
			if code != exitUsage || out.Len() > 0 || !strings.Contains(errout.String(), c.want) || strings.Count(errout.String(), "\n") != 1 {
				t.Errorf("%q %s: exit code %d, %q", words, c.flag, code, errout.String())
			}
		}
		var out, errout bytes.Buffer
		if code := execute(t.Context(), []string{"install", "--set", c.flag + "=1"}, &out, &errout); code != exitUsage || !strings.Contains(errout.String(), c.want) {
			t.Errorf("install --set %s: exit code %d, %q", c.flag, code, errout.String())
		}
		name, value, _ := strings.Cut(strings.TrimLeft(c.flag, "-"), "=")
		variable := "AUTOSCALER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		badInput(t, fmt.Sprintf("%s=%s\n", variable, value), "", c.want)
		badInput(t, c.flag+"\n", "", c.want)
	}
}
