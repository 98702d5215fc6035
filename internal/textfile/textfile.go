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
	"unicode/utf8"
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

// Plain says why a file is no plain text: editors and shells write such files, and what reads them
// takes the mark for a part of the first word.
func Plain(text string) error {
	switch bad := notUTF8(text); {
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("a NUL byte at offset %d: write the file as plain text", strings.IndexByte(text, 0))
	case strings.HasPrefix(text, "\ufeff"):
		return errors.New("the file begins with a byte order mark (BOM): save it as UTF-8 without one")
	case bad >= 0:
		return fmt.Errorf("line %d is not UTF-8: save the file as UTF-8", 1+strings.Count(text[:bad], "\n"))
	}
	return nil
}

// notUTF8 is the offset of the first byte that is no part of a UTF-8 character; -1: there is none.
func notUTF8(text string) int {
	for i, r := range text {
		if _, size := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && size == 1 {
			return i
		}
	}
	return -1
}
