package openstack

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"time"
)

// Server is one of Nova's.
type Server struct {
	ID, Name, Region, Project, User string
	Status                          string // BUILD, ACTIVE, SHUTOFF, ERROR
	TaskState                       string // "scheduling", "spawning", "deleting", or empty
	Flavor                          Flavor
	ImageID                         string // empty: it boots from a volume
	Zone                            string
	KeyName                         string
	UserData                        []byte
	Metadata                        map[string]string
	Tags                            []string
	Created, Updated, Launched      time.Time
	Fault                           *ServerFault
	Addresses                       []Address
	SecurityGroups                  []string // names
	Volumes                         []string // IDs
	GroupID                         string   // of its server group
	ConfigDrive                     bool

	ports []string
	token string // the token that it was made with
}

// Address is one address of a server. Type is "fixed" or "floating".
type Address struct{ Network, IP, MAC, Type string }

// ServerFault is why a server is in ERROR.
type ServerFault struct {
	Code    int
	Message string
	At      time.Time
}

// ServerSpec is a server to be made past the API. Empty fields get what the region has.
type ServerSpec struct {
	Name, Flavor string // the flavor's name; default m1.medium
	Project      string // default demo's
	Zone         string
	Metadata     map[string]string
	Tags         []string
	UserData     []byte
	Networks     []string // names; default NetworkName
}

// Servers lists the servers that are not gone, in order of making.
func (r *Region) Servers() []Server {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	out := make([]Server, len(r.servers))
	for i, s := range r.servers {
		out[i] = r.copied(s)
	}
	return out
}

// Server returns one that is not gone.
func (r *Region) Server(id string) (Server, bool) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	if s := r.server(id); s != nil {
		return r.copied(s), true
	}
	return Server{}, false
}

// copied is what leaves the package. The caller holds the lock.
func (r *Region) copied(s *Server) Server {
	out := *s
	out.Metadata, out.Tags, out.Volumes = maps.Clone(s.Metadata), slices.Clone(s.Tags), slices.Clone(s.Volumes)
	out.Addresses = r.addresses(s)
	if s.Fault != nil {
		f := *s.Fault
		out.Fault = &f
	}
	return out
}

// addresses are those of a server's ports, with their floating ones.
func (r *Region) addresses(s *Server) []Address {
	var out []Address
	for _, id := range s.ports {
		p := r.port(id)
		if p == nil {
			continue
		}
		name := r.network(p.NetworkID).Name
		for _, ip := range p.Addresses {
			out = append(out, Address{name, ip, p.MAC, "fixed"})
		}
		for _, f := range r.floating {
			if f.PortID == p.ID {
				out = append(out, Address{name, f.Address, p.MAC, "floating"})
			}
		}
	}
	return out
}

// CreateServer makes a server past the API: no quota holds. It builds as others do.
func (r *Region) CreateServer(spec ServerSpec) (Server, error) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	if spec.Flavor == "" {
		spec.Flavor = "m1.medium"
	}
	if spec.Project == "" {
		spec.Project = demoProjectID
	}
	if len(spec.Networks) == 0 {
		spec.Networks = []string{NetworkName}
	}
	s := &Server{Name: spec.Name, Project: spec.Project, ImageID: ImageID, Zone: spec.Zone, Metadata: maps.Clone(spec.Metadata),
		Tags: slices.Clone(spec.Tags), UserData: slices.Clone(spec.UserData), SecurityGroups: []string{"default"}}
	if s.Metadata == nil {
		s.Metadata = map[string]string{}
	}
	i := slices.IndexFunc(r.flavors, func(f *Flavor) bool { return f.Name == spec.Flavor })
	if i < 0 {
		return Server{}, fmt.Errorf("make server %s: no flavor %s", spec.Name, spec.Flavor)
	}
	s.Flavor = *r.flavors[i]
	for _, name := range spec.Networks {
		n := slices.IndexFunc(r.networks, func(n *Network) bool { return n.Name == name })
		if n < 0 {
			return Server{}, fmt.Errorf("make server %s: no network %s", spec.Name, name)
		}
		p := r.newPort(r.networks[n], s.Project)
		p.byNova = true
		s.ports = append(s.ports, p.ID)
	}
	r.launch(s)
	return r.copied(s), nil
}

// launch takes a server in and lets it build. The caller holds the lock.
func (r *Region) launch(s *Server) {
	now := time.Now()
	s.ID, s.Region, s.Status, s.TaskState, s.Created, s.Updated = newID(), r.name, "BUILD", "scheduling", now, now
	r.servers = append(r.servers, s)
	r.told(s, "", "BUILD")
	zone := s.Zone
	if zone == "" {
		zone = r.zones[len(r.servers)%len(r.zones)]
	}
	if slices.ContainsFunc(r.full, func(p place) bool { return match(p.flavor, s.Flavor.Name) && match(p.zone, zone) }) {
		r.cloud.after(r.cloud.opts.FailDelay, func() {
			r.breaks(s, 500, "No valid host was found. There are not enough hosts available.")
		})
		return
	}
	// The ports are bound once a host is chosen.
	for _, id := range s.ports {
		if p := r.port(id); p != nil {
			p.DeviceID, p.DeviceOwner = s.ID, "compute:"+zone
		}
	}
	s.Zone, s.TaskState = zone, "spawning"
	r.cloud.after(r.cloud.opts.BuildDelay, func() {
		switch {
		case r.server(s.ID) == nil || s.Status != "BUILD" || s.TaskState == "deleting":
		case r.broken != "":
			r.breaks(s, 500, r.broken)
		case s.token != "" && r.cloud.check(s.token) == nil:
			r.breaks(s, 500, "Build of instance "+s.ID+" aborted: The request you have made requires authentication. (HTTP 401)")
		default:
			s.Launched = time.Now()
			r.become(s, "ACTIVE")
		}
	})
}

func match(pattern, s string) bool { ok, _ := path.Match(pattern, s); return ok }

// breaks puts a server into ERROR.
func (r *Region) breaks(s *Server, code int, message string) {
	if r.server(s.ID) == nil || s.TaskState == "deleting" {
		return
	}
	s.Fault = &ServerFault{Code: code, Message: message, At: time.Now()}
	r.become(s, "ERROR")
}

// become changes a server's status. The caller holds the lock.
func (r *Region) become(s *Server, status string) {
	old := s.Status
	s.Status, s.TaskState, s.Updated = status, "", time.Now()
	r.told(s, old, status)
}

func (r *Region) told(s *Server, old, now string) {
	if f := r.cloud.opts.OnState; f != nil {
		copied := r.copied(s)
		copied.Status = now
		r.cloud.tell(func() { f(copied, old, now) })
	}
}

// DeleteServer deletes a server past the API.
func (r *Region) DeleteServer(id string) error {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	s := r.server(id)
	if s == nil {
		return fmt.Errorf("delete server %s: there is none", id)
	}
	r.remove(s)
	return nil
}

// remove lets a server go. The caller holds the lock.
func (r *Region) remove(s *Server) {
	if s.TaskState == "deleting" {
		return
	}
	s.TaskState = "deleting"
	r.told(s, s.Status, "deleting")
	r.cloud.after(r.cloud.opts.DeleteDelay, func() {
		old := s.Status
		for _, id := range s.ports {
			p := r.port(id)
			switch {
			case p == nil:
			case p.byNova:
				r.dropPort(p)
			default:
				p.DeviceID, p.DeviceOwner = "", ""
			}
		}
		r.volumes = slices.DeleteFunc(r.volumes, func(v *Volume) bool { return v.ServerID == s.ID && v.DeleteOnTermination })
		for _, g := range r.anti {
			g.Members = slices.DeleteFunc(g.Members, func(id string) bool { return id == s.ID })
		}
		r.servers = slices.DeleteFunc(r.servers, func(o *Server) bool { return o == s })
		r.told(s, old, "DELETED")
	})
}

// dropPort removes a port and takes its floating address from it.
func (r *Region) dropPort(p *Port) {
	for _, f := range r.floating {
		if f.PortID == p.ID {
			f.PortID = ""
		}
	}
	r.ports = slices.DeleteFunc(r.ports, func(o *Port) bool { return o == p })
}

// StopServer shuts a server off, FailServer puts a running one into ERROR, as a host
// that dies does.
func (r *Region) StopServer(id string) { r.change(id, "SHUTOFF") }

// FailServer puts a server into ERROR with a fault.
func (r *Region) FailServer(id string, code int, message string) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	if s := r.server(id); s != nil {
		r.breaks(s, code, message)
	}
}

// SetServer changes the metadata and the tags of a server, as its owner may.
func (r *Region) SetServer(id string, metadata map[string]string, tags []string) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	if s := r.server(id); s != nil {
		s.Metadata, s.Tags = maps.Clone(metadata), slices.Clone(tags)
	}
}

func (r *Region) change(id, status string) {
	r.cloud.mu.Lock()
	defer r.cloud.mu.Unlock()
	if s := r.server(id); s != nil {
		r.become(s, status)
	}
}
