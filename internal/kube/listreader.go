package kube

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The protobuf form of a list: a magic number, a runtime.Unknown whose field raw is the list,
// and in each list the metadata and the items
// (k8s.io/apimachinery/pkg/runtime/serializer/protobuf, k8s.io/api/core/v1/generated.proto).
const (
	listMagic      = "k8s\x00"
	fieldRaw       = 2
	fieldListMeta  = 1
	fieldListItems = 2
	wireVarint     = 0
	wireBytes      = 2
	// maxItem is the size of an object that is refused, in bytes. etcd takes 1.5 MB by default.
	maxItem = 64 << 20
)

// readList reads a list while it arrives and calls item with each object's bytes, from as many
// goroutines as run side by side, in no order. The bytes are valid until item returns. It
// returns the resource version of the list. A list that breaks off is an error.
// It costs the bytes of the list; a few objects are in memory at once.
func readList(ctx context.Context, body io.Reader, item func(raw []byte) error) (version string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := runtime.GOMAXPROCS(0)
	raws := make(chan *[]byte, workers)
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for raw := range raws {
				if err := item(*raw); err != nil {
					cancel(fmt.Errorf("decode an object of a list: %w", err))
				}
				buffers.Put(raw)
			}
		})
	}
	r := listReader{in: bufio.NewReaderSize(body, 256<<10)}
	version, err = r.read(func(n int) error {
		raw := buffers.Get().(*[]byte)
		if cap(*raw) < n {
			*raw = make([]byte, n)
		}
		*raw = (*raw)[:n]
		if _, err := io.ReadFull(r.in, *raw); err != nil {
			return err
		}
		select {
		case raws <- raw:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(raws)
	running.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	return version, err
}

// listReader finds the objects in the protobuf form of a list.
type listReader struct{ in *bufio.Reader }

// read calls item with the length of each object, which item takes from the reader.
func (r *listReader) read(item func(n int) error) (version string, err error) {
	magic := make([]byte, len(listMagic))
	if _, err := io.ReadFull(r.in, magic); err != nil {
		return "", breaksOff(err)
	}
	if string(magic) != listMagic {
		return "", errors.New("the API server sent a list that is no protobuf")
	}
	left := -1 // bytes of the list that follow
	for left < 0 {
		field, n, err := r.next(nil)
		switch {
		case err != nil:
			return "", breaksOff(err)
		case field == fieldRaw:
			left = n
		default:
			if _, err := r.in.Discard(n); err != nil {
				return "", breaksOff(err)
			}
		}
	}
	meta := metav1.ListMeta{}
	for left > 0 {
		field, n, err := r.next(&left)
		if err == nil && n > left {
			err = fmt.Errorf("an object of %d bytes, and the list has %d left", n, left)
		}
		if err == nil {
			err = r.take(field, n, &meta, item)
		}
		if err != nil {
			return "", breaksOff(err)
		}
		left -= n
	}
	if meta.Continue != "" || meta.ResourceVersion == "" {
		return "", fmt.Errorf("the API server sent a part of a list (resource version %q, continue %q)", meta.ResourceVersion, meta.Continue)
	}
	return meta.ResourceVersion, nil
}

// take reads one field of the list.
func (r *listReader) take(field, n int, meta *metav1.ListMeta, item func(n int) error) error {
	switch {
	case n > maxItem:
		return fmt.Errorf("an object of %d bytes", n)
	case field == fieldListItems:
		return item(n)
	case field == fieldListMeta:
		raw := make([]byte, n)
		if _, err := io.ReadFull(r.in, raw); err != nil {
			return err
		}
		return meta.Unmarshal(raw)
	default:
		_, err := r.in.Discard(n)
		return err
	}
}

// next reads the number and the length of the next field that has a length; left loses the bytes
// that were read for that.
func (r *listReader) next(left *int) (field, n int, err error) {
	for {
		tag, err := r.uvarint(left)
		if err != nil {
			return 0, 0, err
		}
		value, err := r.uvarint(left)
		switch {
		case err != nil:
			return 0, 0, err
		case tag&7 == wireBytes && value <= 1<<40 && tag>>3 < 1<<29:
			return int(tag >> 3), int(value), nil
		case tag&7 != wireVarint:
			return 0, 0, fmt.Errorf("a field %d of wire type %d", tag>>3, tag&7)
		}
	}
}

// uvarint reads a number.
func (r *listReader) uvarint(left *int) (uint64, error) {
	n, err := binary.ReadUvarint(r.in)
	if left != nil {
		*left -= len(binary.AppendUvarint(nil, n))
	}
	return n, err
}

// breaksOff is an error of a list that did not end.
func breaksOff(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read the list of the API server: %w", err)
}
