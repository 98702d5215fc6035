package report

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
)

// journalSocket takes entries in the journal's native protocol.
const journalSocket = "/run/systemd/journal/socket"

// sendRepeated sends an entry with fields that have several values, so that `journalctl
// GROUP=NAME` finds a line about many groups by each. journal.Send takes one value of each
// field. An error is the caller's cause to send it that way: an entry that is too large for a
// datagram is, too.
func sendRepeated(message string, p journal.Priority, fields map[string]string, repeated map[string]Names) error {
	conn, err := net.Dial("unixgram", journalSocket)
	if err != nil {
		return err
	}
	_, err = conn.Write(datagram(message, p, fields, repeated))
	if closed := conn.Close(); err == nil {
		err = closed
	}
	return err
}

// datagram writes an entry in the native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL).
func datagram(message string, p journal.Priority, fields map[string]string, repeated map[string]Names) []byte {
	var b bytes.Buffer
	put := func(name, value string) {
		if !strings.Contains(value, "\n") {
			fmt.Fprintf(&b, "%s=%s\n", name, value)
			return
		}
		b.WriteString(name + "\n")
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(value))))
		b.WriteString(value + "\n")
	}
	put("PRIORITY", strconv.Itoa(int(p)))
	put("MESSAGE", message)
	for name, value := range fields {
		put(name, value)
	}
	for name, values := range repeated {
		for _, value := range values {
			put(name, value)
		}
	}
	return b.Bytes()
}
