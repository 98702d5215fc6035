package flagvalue

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/autoscaler-agent/autoscaler-agent/internal/form"
)

// formed is the annotation of a flag with the form of its value, of package form; " list" behind it: several with
// commas.
const formed = "autoscaler-agent/form"

// Declare gives each flag of the tree its form: by COMMAND --FLAG, or by --FLAG for all commands.
func Declare(c *cobra.Command, forms map[string]string) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		name := forms[c.Name()+" --"+f.Name]
		if name == "" {
			name = forms["--"+f.Name]
		}
		if name == "" || f.Annotations[limited] != nil {
			return
		}
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[formed] = []string{name}
	})
	for _, sub := range c.Commands() {
		Declare(sub, forms)
	}
}

// FormOf is the form of a flag's value, and whether it is a list; empty: its type judges the value.
func FormOf(f *pflag.Flag) (name string, list bool) {
	if f.Annotations[formed] == nil {
		return "", false
	}
	return strings.CutSuffix(f.Annotations[formed][0], " list")
}

// Forms refuses a value that has not the form of its flag.
func Forms(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		name, list := FormOf(f)
		if name == "" || err != nil {
			return
		}
		given := []string{f.Value.String()}
		if several, ok := f.Value.(pflag.SliceValue); ok {
			given = several.GetSlice()
		} else if list {
			given = strings.Split(f.Value.String(), ",")
		}
		for _, text := range given {
			if list {
				text = strings.TrimSpace(text)
			}
			switch remedy := ""; {
			case text == "":
				err = fmt.Errorf("--%s is %q, which has an empty element: write what belongs there, or leave a comma out", f.Name, strings.Join(given, ","))
			default:
				if remedy = form.Judge(name, text); remedy != "" {
					err = fmt.Errorf("--%s is %q: write %s", f.Name, text, remedy)
				}
			}
			if err != nil {
				return
			}
		}
	})
	return err
}

// emptyElement tells a list that has a comma too many.
func emptyElement(list string) error {
	if list != "" && strings.Contains(","+strings.ReplaceAll(list, " ", "")+",", ",,") {
		return fmt.Errorf("it has an empty element: write what belongs there, or leave a comma out")
	}
	return nil
}
