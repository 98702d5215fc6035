package atomicfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/internal/bounded"
)

// Load reads the file at path, which Write wrote, and removes what crashes left beside it.
// A missing file is the zero T. So is one that cannot be read or that decode refuses, and
// a directory in its place: it is set aside, and the error says why and where the old bytes
// are. A T that is not zero is the whole file also beside an error, which tells then what
// could not be removed, or which times of the far future count as now.
func Load[T any](path string, now time.Time, decode func(data []byte, to *T) error) (T, error) {
	var zero, read T
	_, swept := Sweep(path)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return zero, swept
	}
	if err == nil {
		err = decode(data, &read)
	}
	if err == nil {
		if wrong := bounded.Times(&read, now); wrong != "" {
			err = errors.New(wrong)
		}
		return read, errors.Join(err, swept)
	}
	aside, moved := SetAside(path, now)
	if moved != nil {
		return zero, errors.Join(fmt.Errorf("%w; %w", err, moved), swept)
	}
	return zero, errors.Join(fmt.Errorf("%w; set aside as %s, starting empty", err, aside), swept)
}

// Versioned decodes JSON with a field "version", which has to be version: another one has
// other fields. A field that to always has and data lacks shows that data are another file's, which
// somebody has put here: it would be read as an empty one.
func Versioned(data []byte, version int, to any) error {
	if err := is(data, version); err != nil {
		return err
	}
	var has map[string]json.RawMessage
	if err := json.Unmarshal(data, &has); err != nil {
		return err
	}
	for f := range reflect.TypeOf(to).Elem().Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, there := has[name]; !there && options == "" {
			return fmt.Errorf("it has no field %q: it is another file", name)
		}
	}
	return json.Unmarshal(data, to)
}

// Exactly is Versioned for a file in which an unknown field is a fault.
func Exactly(data []byte, version int, to any) error {
	if err := is(data, version); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

func is(data []byte, version int) error {
	var written struct{ Version int }
	if err := json.Unmarshal(data, &written); err != nil {
		return err
	}
	if written.Version != version {
		return fmt.Errorf("it is of version %d, this build writes %d", written.Version, version)
	}
	return nil
}
