// Package textfile reads files that a person writes: settings, kubeconfigs, user data. A command
// that is given the wrong path must say so and not wait.
//
// Small and apart: settings, clients and commands read such files. It refuses a named pipe, which may wait for ever for a writer, and a file that has no end or is
// larger than any of its kind.
package textfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Read reads a file of at most most bytes. Its errors are of *fs.PathError.
func Read(path string, most int64) ([]byte, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is larger than %d KiB: is it the right file?", most>>10)}
	}
	return data, nil
}

// Check says whether a path can be read without waiting, for readers that open it themselves.
// A pipe of a shell (/dev/fd/63, /dev/stdin) has a writer and is allowed.
func Check(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			p.Op = "open"
		}
		return err
	case st.IsDir():
		return &fs.PathError{Op: "open", Path: path, Err: errors.New("it is a directory: name a file")}
	case st.Mode()&fs.ModeNamedPipe != 0 && !strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/proc/"):
		return &fs.PathError{Op: "open", Path: path, Err: errors.New("it is a named pipe: name a regular file")}
	case st.Mode()&fs.ModeSocket != 0:
		return &fs.PathError{Op: "open", Path: path, Err: errors.New("it is a socket: name a regular file")}
	}
	return nil
}
