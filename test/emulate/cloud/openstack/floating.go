package openstack

import "fmt"

// Float gives the first port of a server a floating address, past the API. An address
// that is there already moves to the server; empty: a new one.
func (r *Region) Float(server, address string) (string, error) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	s := r.server(server)
	if s == nil || len(s.ports) == 0 {
		return "", fmt.Errorf("float server %s: it is not there, or has no port", server)
	}
	for _, f := range r.floating {
		if f.Address == address {
			f.PortID = s.ports[0]
			return address, nil
		}
	}
	for _, n := range r.networks {
		if n.External {
			f := &FloatingIP{ID: newID(), Address: n.address()[0], NetworkID: n.ID, PortID: s.ports[0], Project: s.Project}
			r.floating = append(r.floating, f)
			return f.Address, nil
		}
	}
	return "", fmt.Errorf("float server %s: no network is external", server)
}
