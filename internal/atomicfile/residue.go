package atomicfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// writing is held by every write of this process, so that a sweep removes the temporary
// file of none of them. Other processes are kept away by the lock of the state directory.
var writing sync.RWMutex

// keptAside is how many files that were set aside are kept for one path.
const keptAside = 3

// Sweep removes the temporary files that crashes left beside path, and tells their names.
// They may hold what path would have held, a token too.
func Sweep(path string) (removed []string, err error) {
	target, _, err := follow(path)
	if err != nil {
		return nil, fmt.Errorf("sweep %s: %w", path, err)
	}
	return sweep(filepath.Dir(target), func(name string) bool { return temporaryOf(name) == filepath.Base(target) })
}

// SweepDir does so for every file of a directory that this package alone writes to.
func SweepDir(dir string) (removed []string, err error) {
	return sweep(dir, func(name string) bool { return temporaryOf(name) != "" })
}

func sweep(dir string, leftover func(name string) bool) (removed []string, err error) {
	writing.Lock()
	defer writing.Unlock()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sweep %s: %w", dir, err)
	}
	var errs []error
	for _, e := range entries {
		if !e.Type().IsRegular() || !leftover(e.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); ignoreMissing(err) != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, e.Name())
	}
	return removed, errors.Join(errs...)
}

// temporaryOf is the name that a temporary file was to get, "" for a name that replace
// does not make: ".NAME.DIGITS".
func temporaryOf(name string) string {
	rest, hidden := strings.CutPrefix(name, ".")
	at := strings.LastIndexByte(rest, '.')
	if !hidden || at < 1 || at == len(rest)-1 || strings.Trim(rest[at+1:], "0123456789") != "" {
		return ""
	}
	return rest[:at]
}

// SetAside renames what cannot be read at path, a directory too, to path.bad-SECONDS, and
// keeps the last three files of that kind. A directory is never removed.
func SetAside(path string, now time.Time) (aside string, err error) {
	for second := now.Unix(); ; second++ { // of two in one second both are kept
		aside = fmt.Sprintf("%s.bad-%d", path, second)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", fmt.Errorf("set %s aside: %w", path, err)
		}
	}
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("set %s aside: %w", path, err)
	}
	old, err := filepath.Glob(escape(path) + ".bad-*")
	if err != nil {
		return aside, fmt.Errorf("set %s aside: %w", path, err)
	}
	old = slices.DeleteFunc(old, func(p string) bool {
		info, err := os.Lstat(p)
		return err != nil || !info.Mode().IsRegular() || strings.Trim(strings.TrimPrefix(p, path+".bad-"), "0123456789") != ""
	})
	// Seconds of equal length sort as text; the length decides else.
	slices.SortFunc(old, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) })
	for _, p := range old[min(keptAside, len(old)):] {
		if err := os.Remove(p); ignoreMissing(err) != nil {
			return aside, fmt.Errorf("remove what was set aside long ago: %w", err)
		}
	}
	return aside, nil
}

// SetAsideDirectory sets aside a directory that stands where path should be a file; ""
// where none does.
func SetAsideDirectory(path string, now time.Time) (aside string, err error) {
	target, info, err := follow(path)
	if err != nil || info == nil || !info.IsDir() {
		return "", err
	}
	return SetAside(target, now)
}

// escape makes a pattern that matches path alone.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
