package machine

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
)

// consoleSize is how much of a console a cloud keeps (EC2: 64 KB).
const consoleSize = 64 << 10

// console is a machine's serial console: the end of it is kept, and whole lines are
// passed on.
type console struct {
	id  string
	out io.Writer

	mu   sync.Mutex
	kept []byte
	line []byte
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, p...)
	if over := len(c.kept) - consoleSize; over > 0 {
		c.kept = append(c.kept[:0], c.kept[over:]...)
	}
	if c.out == nil {
		return len(p), nil
	}
	c.line = append(c.line, p...)
	for {
		i := bytes.IndexByte(c.line, '\n')
		if i < 0 {
			return len(p), nil
		}
		fmt.Fprintf(c.out, "%s | %s\n", c.id, c.line[:i])
		c.line = c.line[i+1:]
	}
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.kept)
}

func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	return formatUUID(b[:])
}

// systemUUID is the firmware's UUID; on EC2 it starts with "ec2".
func systemUUID(instance string) string {
	sum := sha256.Sum256([]byte(instance))
	return "ec2" + formatUUID(sum[:16])[3:]
}

func formatUUID(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
