package flagvalue

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// judged are the types of this package whose Set judges an empty value: several values have no
// text of their own, and empty amounts reserve nothing.
var judged = []string{"amounts", "label", "pair", "taint"}

// Empty names a flag that is given without a value, as a shell variable that is not set
// leaves it: what the flag says would be missed later, where nobody knows of the flag.
func Empty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		given := []string{f.Value.String()}
		switch list, several := f.Value.(pflag.SliceValue); {
		case several:
			given = list.GetSlice()
		case slices.Contains(judged, f.Value.Type()):
			return
		}
		if blank := func(v string) bool { return strings.Trim(v, ", \t\r\n") == "" }; err == nil && !slices.ContainsFunc(given, func(v string) bool { return !blank(v) }) {
			_, usage := pflag.UnquoteUsage(f)
			err = fmt.Errorf("--%s is empty: leave it out, or write its value: %s", f.Name, strings.Join(strings.Fields(usage), " "))
		}
	})
	return err
}

// Blank names an argument without text, as a shell variable that is not set leaves it: to a
// command whose argument may be left out it would mean everything.
func Blank(args []string) error {
	for i, a := range args {
		if strings.TrimSpace(a) == "" {
			return fmt.Errorf("argument %d is empty: leave it out, or write what it names", i+1)
		}
	}
	return nil
}

// Control names an argument, or the value of a flag, with a control character: no name, path or
// text of the command line has one, and a terminal that shows it obeys it.
func Control(flags *pflag.FlagSet, args []string) (err error) {
	has := func(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }
	for _, a := range args {
		if has(a) {
			return fmt.Errorf("argument %q has a control character: write it without", a)
		}
	}
	flags.Visit(func(f *pflag.Flag) {
		given := []string{f.Value.String()}
		if list, several := f.Value.(pflag.SliceValue); several {
			given = list.GetSlice()
		}
		if i := slices.IndexFunc(given, has); i >= 0 && err == nil {
			err = fmt.Errorf("--%s is %q, which has a control character: write it without", f.Name, given[i])
		}
	})
	return err
}

// limited is the annotation of a flag with the words that it takes.
const limited = "autoscaler-agent/words"

// Limit lets a flag take these words alone.
func Limit(c *cobra.Command, flag string, words []string) {
	f := c.Flags().Lookup(flag)
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[limited] = words
}

// Words refuses a value that is none of the words that its flag takes.
func Words(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if words := f.Annotations[limited]; words != nil && err == nil && !slices.Contains(words, f.Value.String()) {
			err = fmt.Errorf("--%s is %q: use %s", f.Name, f.Value, strings.Join(words, ", "))
		}
	})
	return err
}

// Against makes a flag exclude each of the others.
func Against(c *cobra.Command, flag string, others ...string) {
	for _, other := range others {
		c.MarkFlagsMutuallyExclusive(flag, other)
	}
}

// OfAutoscaler answers a flag of Cluster Autoscaler on a command that reads the settings:
// on the others a name that is nearly the same is likelier meant.
func OfAutoscaler(c *cobra.Command, name string) string {
	if c.HasParent() && c.Flags().Lookup("env-file") == nil {
		return ""
	}
	answer := config.AnswerToFlag("--" + name)
	if config.FromClusterAutoscaler("--"+name) != "" {
		answer += "=VALUE into " + config.EnvFile
	}
	return answer
}

// nearest is the flag that name may have been meant for, by the rules that
// cobra has for names of commands.
func nearest(flags *pflag.FlagSet, name string) string {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	flags.VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	if near := names.SuggestionsFor(name); len(name) > 1 && len(near) > 0 {
		return near[0]
	}
	return ""
}
