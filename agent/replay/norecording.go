package replay

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// NoRecording says where recordings come from.
func NoRecording(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		err = errors.New("the file is empty")
	case errors.Is(err, gzip.ErrHeader):
		err = errors.New("the file is no recording")
	}
	return fmt.Errorf("%w (autoscaler-agent status --record FILE makes one)", err)
}
