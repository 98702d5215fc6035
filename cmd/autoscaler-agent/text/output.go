package text

import "io"

// Output is standard output that remembers its first failed write. Most results are printed in
// pieces whose errors nobody looks at, and a full disk must not leave half a file behind a
// command that says it succeeded.
type Output struct {
	To  io.Writer
	Err error // of the first write that failed
}

// Write is io.Writer's.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.To.Write(p)
	if err != nil && o.Err == nil {
		o.Err = err
	}
	return n, err
}
