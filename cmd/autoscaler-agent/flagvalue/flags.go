package flagvalue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
