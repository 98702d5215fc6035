package kube

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// The protobuf form of a watch: frames of a length of four bytes and a metav1.WatchEvent, whose
// object is a runtime.RawExtension. Its field raw is the magic number of listMagic and a runtime.Unknown
// (k8s.io/apimachinery/pkg/runtime/serializer/protobuf, and generated.proto of the two packages).
const (
	frameHeader      = 4
	fieldEventType   = 1
	fieldEventObject = 2
	fieldExtension   = 1
)

// readEvents reads the events of a watch while they arrive and calls event with the bytes of each
// object, which are valid until event returns. It returns nil where the watch ends: the server ends each,
// and a connection may break at any time.
// It costs the bytes of the events; one is in memory at once.
func readEvents(body io.Reader, event func(what apiwatch.EventType, object []byte) error) error {
	in := bufio.NewReaderSize(body, 16<<10)
	var header [frameHeader]byte
	var frame []byte
	for {
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return nil
		}
		n := int64(binary.BigEndian.Uint32(header[:]))
		if n > maxItem {
			return fmt.Errorf("the API server sent an event of %d bytes, or a watch that is no protobuf", n)
		}
		if int64(cap(frame)) < n {
			frame = make([]byte, n)
		}
		frame = frame[:n]
		if _, err := io.ReadFull(in, frame); err != nil {
			return nil
		}
		what, object, err := splitEvent(frame)
		if err != nil {
			return err
		}
		if err := event(what, object); err != nil {
			return err
		}
	}
}

// splitEvent finds the type and the object of an event.
func splitEvent(frame []byte) (what apiwatch.EventType, object []byte, err error) {
	kind, err := bytesField(frame, fieldEventType)
	if err != nil {
		return "", nil, err
	}
	for _, number := range []protowire.Number{fieldEventObject, fieldExtension} {
		if frame, err = bytesField(frame, number); err != nil {
			return "", nil, err
		}
	}
	if len(frame) < len(listMagic) || string(frame[:len(listMagic)]) != listMagic {
		return "", nil, fmt.Errorf("the API server sent an event %q whose object is no protobuf", kind)
	}
	object, err = bytesField(frame[len(listMagic):], fieldRaw)
	return apiwatch.EventType(kind), object, err
}

// bytesField is the last field of a number that is a string, bytes or a message; nil: there is
// none.
func bytesField(message []byte, number protowire.Number) (value []byte, err error) {
	for len(message) > 0 {
		field, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, fmt.Errorf("read an event of a watch: %w", protowire.ParseError(tag))
		}
		size := protowire.ConsumeFieldValue(field, kind, message[tag:])
		if size < 0 {
			return nil, fmt.Errorf("read an event of a watch: %w", protowire.ParseError(size))
		}
		if field == number && kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[tag:])
		}
		message = message[tag+size:]
	}
	return value, nil
}
