package flagvalue

import (
	"errors"
	"slices"
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
