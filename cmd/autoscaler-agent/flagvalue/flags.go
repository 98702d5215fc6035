package flagvalue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Empty names a flag that is given without a value, as a shell variable that is not set
// leaves it: what the flag says would be missed later, where nobody knows of the flag. Flags
// with a form of their own (this package's) judge an empty value themselves.
func Empty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		given := []string{f.Value.String()}
		switch list, several := f.Value.(pflag.SliceValue); {
		case several:
			given = list.GetSlice()
		case f.Value.Type() != "string":
			return
		}
		if blank := func(v string) bool { return strings.TrimSpace(v) == "" }; err == nil && (len(given) == 0 || slices.ContainsFunc(given, blank)) {
			_, usage := pflag.UnquoteUsage(f)
			err = fmt.Errorf("--%s is empty: leave it out, or write its value: %s", f.Name, strings.Join(strings.Fields(usage), " "))
		}
	})
	return err
}

// Nearest is the flag that name may have been meant for, by the rules that
// cobra has for names of commands.
func Nearest(flags *pflag.FlagSet, name string) string {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	flags.VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	if near := names.SuggestionsFor(name); len(name) > 1 && len(near) > 0 {
		return near[0]
	}
	return ""
}
