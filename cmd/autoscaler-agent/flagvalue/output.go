package flagvalue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/internal/form"
)

// Outputs are the forms that a command prints its result in.
var Outputs = []string{"table", "json", "yaml"}

// Output is one of Outputs.
type Output string

// String is pflag.Value's.
func (f *Output) String() string { return string(*f) }

// Type is pflag.Value's.
func (f *Output) Type() string { return "format" }

// Set is pflag.Value's.
func (f *Output) Set(v string) error {
	if !slices.Contains(Outputs, v) {
		return errors.New("use table, json or yaml")
	}
	*f = Output(v)
	return nil
}

// File is a file that a command writes. The name of a form of Outputs is refused: other commands take one under -o, and
// a file of that name with a secret in it would be found by nobody.
type File string

// Set is pflag.Value's.
func (f *File) Set(v string) error {
	if slices.Contains(Outputs, v) {
		return fmt.Errorf("name a file: this command has no output format; for a file of this name write ./%s", v)
	}
	if remedy := form.Judge("path", v); v != "" && remedy != "" { // the empty one is told with its remedy later
		return errors.New("write " + remedy)
	}
	*f = File(v)
	return nil
}

// String is pflag.Value's.
func (f *File) String() string { return string(*f) }

// Type is pflag.Value's.
func (f *File) Type() string { return "file" }
