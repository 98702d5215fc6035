package flagvalue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Lost is a flag of a command line without a command. A parent takes unknown flags, which
// may be those of a subcommand that is misspelt.
func Lost(root *cobra.Command, args []string) string {
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case !strings.HasPrefix(a, "-"):
			return ""
		case name != "help" && name != "h" && name != "version" && root.Flags().Lookup(name) == nil:
			return a
		}
	}
	return ""
}

// Fault puts what pflag says of a flag into one sentence with its remedy.
func Fault(c *cobra.Command, err error) string {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := missing.GetSpecifiedName()
		if answer := OfAutoscaler(c, name); answer != "" {
			return dashed(name) + " " + answer
		}
		if near := nearest(c.Flags(), name); near != "" {
			return fmt.Sprintf("there is no flag --%s: did you mean --%s?", name, near)
		}
		return fmt.Sprintf("there is no flag %s (%s --help lists the flags)", dashed(name), c.CommandPath())
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		var cause error = wrong.Unwrap()
		switch wrong.GetFlag().Value.Type() { // what Go says of these helps nobody
		case "bool":
			cause = errors.New("write true or false")
		case "duration":
			cause = errors.New("write a time with its unit, for example 90m or 4h")
		case "int", "int32", "int64", "uint":
			cause = errors.New("write a whole number")
		}
		return fmt.Sprintf("%s is %q: %v", dashed(wrong.GetFlag().Name), wrong.GetValue(), cause)
	}
	return fmt.Sprintf("%v (%s --help has examples)", err, c.CommandPath())
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
