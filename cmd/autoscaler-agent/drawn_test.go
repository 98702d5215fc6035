package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/internal/form"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/oddvalues"
)

// valuesOf is the name under which package oddvalues knows the values of a flag; empty: words of its own.
func valuesOf(f *pflag.Flag) (kind string, list bool) {
	if kind, list = flagvalue.FormOf(f); kind != "" {
		return kind, list
	}
	switch typ := f.Value.Type(); typ {
	case "duration":
		return "time", false
	case "label", "taint":
		return typ + ":", false
	case "version":
		return "release", false
	case "pair", "bool", "amounts":
		return typ, false
	case "file":
		return "path", false
	}
	return "", false
}

// TestEveryFlagIsChecked: a form, words or a type of package flagvalue judge the value of each flag of each command. The
// next flag without one fails here.
func TestEveryFlagIsChecked(t *testing.T) {
	every(t, func(c *cobra.Command, words []string) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			kind, _ := valuesOf(f)
			limited := f.Annotations["autoscaler-agent/words"] != nil
			if f.Name != "help" && !limited && (kind == "" || len(oddvalues.Refused(kind)) == 0) {
				t.Errorf("%s --%s has type %s and no form: write it into flagForms", strings.Join(words, " "), f.Name, f.Value.Type())
			}
			if name, _ := flagvalue.FormOf(f); name != "" && !form.Known(name) {
				t.Errorf("%s --%s: there is no form %q", strings.Join(words, " "), f.Name, name)
			}
		})
	})
}

// TestDrawnCommandLines draws command lines with values from a dictionary of what people write. None ends in a panic; a
// value that the flag's type refuses is answered with exit code 2 and one sentence that names the flag and the remedy; a
// value that has the form is not refused for it.
func TestDrawnCommandLines(t *testing.T) {
	seed, times := drawn.Seed(t), drawn.Times(t)
	plain(t)
	t.Chdir(t.TempDir())
	r := rand.New(rand.NewPCG(seed, 54))
	for range 500 * times {
		c, words := newRoot(), []string(nil)
		for c.HasSubCommands() {
			subs := c.Commands()
			c = subs[r.IntN(len(subs))]
			words = append(words, c.Name())
		}
		f := drawFlag(r, c, func(*pflag.Flag) bool { return true })
		if f == nil {
			continue
		}
		kind, list := valuesOf(f)
		refused := oddvalues.Refused(kind)
		switch {
		case f.Annotations["autoscaler-agent/words"] != nil:
			refused = []string{" ", "perhaps", "☃", "a,b", "windows "}
		case list:
			refused = slices.DeleteFunc(refused, func(s string) bool { return strings.TrimSpace(s) != s && strings.TrimSpace(s) != "" })
			refused = append(refused, oddvalues.Lists()...)
			if f.Value.Type() == "stringSlice" { // its own reader takes quotes away, as of a file with comma-separated values
				refused = slices.DeleteFunc(refused, func(s string) bool { return strings.ContainsAny(s, "\"") })
			}
		case kind == "amounts":
			refused = slices.DeleteFunc(refused, func(s string) bool { return strings.TrimSpace(s) != s })
		}
		value := refused[r.IntN(len(refused))]
		args := append(slices.Clone(words), arguments[c.Name()]...)
		for range r.IntN(2) { // another flag whose value is right
			o := drawFlag(r, c, func(o *pflag.Flag) bool {
				k, _ := valuesOf(o)
				return len(oddvalues.Taken(k)) > 0 && o.Name != f.Name && o.Name != "all"
			})
			if o != nil {
				k, _ := valuesOf(o)
				good := oddvalues.Taken(k)
				args = append(args, "--"+o.Name+"="+good[r.IntN(len(good))])
			}
		}
		args = append(args, "--"+f.Name+"="+value)
		var out, errout bytes.Buffer
		code := execute(t.Context(), args, &out, &errout)
		said := errout.String()
		remedy := strings.ContainsAny(said, ":") && (strings.Contains(said, "write") || strings.Contains(said, "use ") || strings.Contains(said, "leave") || strings.Contains(said, "want ") || strings.Contains(said, "give") || strings.Contains(said, "only "))
		if code != exitUsage || out.Len() > 0 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "--"+f.Name) && !strings.Contains(said, "exclude each other") || !remedy {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out.String(), said)
		}
	}
}

// TestDrawnGoodCommandLines draws values that have the form of their flags: none is refused for its form, and nothing panics.
func TestDrawnGoodCommandLines(t *testing.T) {
	seed, times := drawn.Seed(t), drawn.Times(t)
	plain(t)
	t.Chdir(t.TempDir())
	r := rand.New(rand.NewPCG(seed, 55))
	never := []string{"run", "install", "uninstall", "kubeconfig"} // they would act on this machine
	for range 200 * times {
		c, args := newRoot(), []string(nil)
		for c.HasSubCommands() {
			subs := c.Commands()
			c = subs[r.IntN(len(subs))]
			args = append(args, c.Name())
		}
		if slices.Contains(never, c.Name()) {
			continue
		}
		args = append(args, arguments[c.Name()]...)
		for range 1 + r.IntN(4) {
			if f := drawFlag(r, c, func(f *pflag.Flag) bool { k, _ := valuesOf(f); return len(oddvalues.Taken(k)) > 0 }); f != nil {
				kind, _ := valuesOf(f)
				good := oddvalues.Taken(kind)
				args = append(args, "--"+f.Name+"="+good[r.IntN(len(good))])
			}
		}
		var out, errout bytes.Buffer
		code := execute(t.Context(), args, &out, &errout)
		said := errout.String()
		if code != exitOK && code != exitFailed && code != exitUsage || code != exitOK && said == "" && out.Len() == 0 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out.String(), said)
		}
		if code == exitUsage && strings.Count(said, "\n") == 1 && !strings.Contains(said, "--") {
			t.Errorf("%q: no flag is named: %q", args, said)
		}
	}
}
