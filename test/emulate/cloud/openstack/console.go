package openstack

import (
	"net/http"
	"strings"
)

// Console appends to what os-getConsoleOutput tells of a server.
func (c *Cloud) Console(id, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.consoles == nil {
		c.consoles = map[string]string{}
	}
	c.consoles[id] += text
}

// serverAction answers the one action on servers that is emulated.
func (r *Region) serverAction(q *call, id string) {
	var in struct {
		Console *struct {
			Length int `json:"length"`
		} `json:"os-getConsoleOutput"`
	}
	if !q.decode(&in) {
		return
	}
	if in.Console == nil {
		q.fail(http.StatusBadRequest, "This emulated Nova knows os-getConsoleOutput alone.")
		return
	}
	s := r.mine(q, id)
	if s == nil {
		return
	}
	lines := strings.SplitAfter(r.cloud.consoles[s.ID], "\n")
	if n := in.Console.Length; n > 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	q.answer(http.StatusOK, map[string]any{"output": strings.Join(lines, "")})
}
