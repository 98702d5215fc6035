package flagvalue

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Once lets each flag of a command and of those below it be given once, unless it takes several values
// or the value is the same: of two values, pflag takes the last without a word.
func Once(c *cobra.Command) {
	for _, sub := range c.Commands() {
		Once(sub)
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, list := f.Value.(pflag.SliceValue); !list && !slices.Contains(several, f.Value.Type()) {
			f.Value = &once{Value: f.Value}
		}
	})
}

// several are the types of this package whose flags may be repeated.
var several = []string{"label", "pair", "taint"}

type once struct {
	pflag.Value
	given []string
}

// Set is pflag.Value's.
func (o *once) Set(v string) error {
	if len(o.given) > 0 && o.given[0] != v {
		return twice{o.given[0], v}
	}
	o.given = []string{v}
	return o.Value.Set(v)
}

// twice is two values of a flag that takes one.
type twice [2]string

func (t twice) Error() string { return fmt.Sprintf("it was %q before: give it once", t[0]) }
