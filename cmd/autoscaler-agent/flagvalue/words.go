package flagvalue

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// OneOf is the value of a flag that takes one of a few words; name is the word of its help.
func OneOf(value *string, name string, words ...string) *Word {
	return &Word{value, name, words}
}

// Word is what OneOf returns.
type Word struct {
	value *string
	name  string
	words []string
}

// String is pflag.Value's.
func (w *Word) String() string {
	if w.value == nil {
		return ""
	}
	return *w.value
}

// Type is pflag.Value's.
func (w *Word) Type() string { return w.name }

// Set is pflag.Value's.
func (w *Word) Set(v string) error {
	if !slices.Contains(w.words, v) {
		return errors.New("use " + strings.Join(w.words, " or "))
	}
	*w.value = v
	return nil
}

// Version is a version of Kubernetes; the empty one is not known.
type Version string

var versionForm = regexp.MustCompile(`\Av?1\.[0-9]{1,3}(\.[0-9]{1,3})?\z`)

// String is pflag.Value's.
func (k *Version) String() string { return string(*k) }

// Type is pflag.Value's.
func (k *Version) Type() string { return "version" }

// Set is pflag.Value's.
func (k *Version) Set(v string) error {
	if !versionForm.MatchString(v) {
		return errors.New("write for example v1.36.3")
	}
	*k = Version(v)
	return nil
}
