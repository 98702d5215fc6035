package openstack

import (
	"bytes"
	"context"
	_ "embed" // the driver
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
)

// Debian has Magnum and no Heat that could be its driver's, so the clusters' nodes are
// made by a driver of this package's own. All else is Magnum's.
var (
	//go:embed driver/e2e_nodes.py
	nodeDriver []byte
	//go:embed driver/e2e_conductor.py
	conductor []byte
)

// magnumDomain holds the users that Magnum makes for its clusters; magnumAdmin makes them.
const (
	magnumDomain = "magnum"
	magnumAdmin  = "magnum_domain_admin"
	template     = "e2e"
)

// drivers is the directory of what Magnum and Cinder load.
func (s *Stack) drivers() string { return filepath.Join(s.dir, "drivers") }

// writeDriver writes the drivers, Magnum's as a Python distribution with its entry point.
func (s *Stack) writeDriver() error {
	info := filepath.Join(s.drivers(), "e2e_nodes-1.0.egg-info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	for path, text := range map[string][]byte{
		filepath.Join(s.drivers(), "e2e_nodes.py"):     nodeDriver,
		filepath.Join(s.drivers(), "e2e_conductor.py"): conductor,
		filepath.Join(s.drivers(), "e2e_volumes.py"):   volumeDriver,
		filepath.Join(info, "PKG-INFO"):                []byte("Metadata-Version: 2.1\nName: e2e-nodes\nVersion: 1.0\n"),
		filepath.Join(info, "entry_points.txt"):        []byte("[magnum.drivers]\ne2e_nodes = e2e_nodes:Driver\n"),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) magnumConfiguration(transport string, lock, policy options) map[string]options {
	internal := options{"endpoint_type = internalURL"}
	return map[string]options{
		"DEFAULT": {"host = magnum", "periodic_interval_max = 1", transport, "state_path = " + filepath.Join(s.dir, "magnum")},
		"api": {"host = 127.0.0.1", "port = " + strconv.Itoa(s.ports["magnum"]), "workers = 1",
			"api_paste_config = /usr/share/magnum-common/api-paste.ini"},
		"conductor": {"workers = 1"}, "database": {"connection = " + s.database("magnum")},
		"certificates": {"cert_manager_type = x509keypair", "storage_path = " + filepath.Join(s.dir, "magnum")},
		"trust": {"trustee_domain_name = " + magnumDomain, "trustee_domain_admin_name = " + magnumAdmin,
			"trustee_domain_admin_password = " + password, "trustee_keystone_interface = public"},
		"drivers": {"disabled_drivers = k8s_fedora_coreos_v1,k8s_fedora_atomic_v1,k8s_coreos_v1,k8s_fedora_ironic_v1,mesos_ubuntu_v1,swarm_fedora_atomic_v1,swarm_fedora_atomic_v2",
			"send_cluster_metrics = false"}, // nobody answers at a cluster's API server
		"cluster": {"temp_cache_dir = " + filepath.Join(s.dir, "magnum")}, "oslo_concurrency": lock, "oslo_policy": policy,
		"nova_client": internal, "glance_client": internal, "neutron_client": internal,
		"keystone_auth": s.account(), "keystone_authtoken": s.guard("container-infra"),
	}
}

func (s *Stack) startMagnum(ctx context.Context) error {
	for name, module := range map[string]string{"magnum": "magnum.cmd.api", "magnum-conductor": "e2e_conductor"} {
		code := fmt.Sprintf("import sys; sys.argv[0]=%q; from %s import main; sys.exit(main())", name, module)
		if err := s.start(name, []string{"PYTHONPATH=" + s.drivers()}, "/usr/bin/python3", "-c", code, "--config-file", s.etc("magnum.conf")); err != nil {
			return err
		}
	}
	// A call before the conductor listens is lost, and waited for a minute.
	err := s.until(ctx, "Magnum's conductor listens", func() error {
		if err := s.ended(); err != nil {
			return fmt.Errorf("%w: %w", errOver, err)
		}
		_, err := os.Stat(filepath.Join(s.drivers(), "listens"))
		return err
	})
	if err != nil {
		return err
	}
	if err := s.answers(ctx, "magnum"); err != nil {
		return err
	}
	return s.until(ctx, "Magnum takes a cluster template", func() error {
		err := s.Magnum(ctx, "POST", "/clustertemplates", object{"name": template, "coe": "kubernetes", "image_id": "worker", "flavor_id": "m1.small",
			"master_flavor_id": "m1.small", "server_type": "vm", "fixed_network": "workers", "external_network_id": outside, "network_driver": "flannel",
			"keypair_id": "ops"}, nil)
		if gone := s.ended(); gone != nil {
			return fmt.Errorf("%w: %w", errOver, gone)
		}
		return err
	})
}

// fillMagnum makes the domain in which Magnum has a user for each cluster.
func (s *Stack) fillMagnum(roles map[string]string, post func(path string, body object) (object, error)) error {
	domain, err := post("/domains", object{"domain": object{"name": magnumDomain}})
	if err != nil {
		return err
	}
	user, err := post("/users", object{"user": object{"name": magnumAdmin, "domain_id": id(domain, "domain"), "password": password}})
	if err != nil {
		return err
	}
	path := "/v3/domains/" + id(domain, "domain") + "/users/" + id(user, "user") + "/roles/" + roles["admin"]
	_, err = s.seed.admin.do(context.Background(), http.MethodPut, s.url("keystone", path), nil, nil)
	return err
}

// Magnum asks Magnum for something as demo, with the newest microversion.
func (s *Stack) Magnum(ctx context.Context, method, path string, body, into any) error {
	return s.ask(ctx, s.seed.demo, method, s.url("magnum", "/v1"+path), body, into)
}

// Cluster is what the tests look at of one of Magnum's clusters.
type Cluster struct {
	UUID, Name, Status string
	StatusReason       string `json:"status_reason"`
	NodeCount          int    `json:"node_count"`
}

// NodeGroup is what the tests look at, and set, of a node group.
type NodeGroup struct {
	UUID         string         `json:"uuid,omitempty"`
	Name         string         `json:"name"`
	Role         string         `json:"role,omitempty"`
	Status       string         `json:"status,omitempty"`
	StatusReason string         `json:"status_reason,omitempty"`
	Flavor       string         `json:"flavor_id,omitempty"`
	Count        int            `json:"node_count"`
	Min          int            `json:"min_node_count"`
	Max          *int           `json:"max_node_count,omitempty"`
	Labels       map[string]any `json:"labels,omitempty"`
}

// CreateCluster makes a cluster with one master node and one node, as demo with its
// password: Keystone makes no trust for an application credential.
func (s *Stack) CreateCluster(ctx context.Context, name string, labels map[string]string) error {
	return s.Magnum(ctx, "POST", "/clusters", object{"name": name, "cluster_template_id": template, "node_count": 1, "master_count": 1, "keypair": "ops", "labels": labels}, nil)
}

// Cluster reads one.
func (s *Stack) Cluster(ctx context.Context, name string) (c Cluster, err error) {
	err = s.Magnum(ctx, "GET", "/clusters/"+url.PathEscape(name), nil, &c)
	return c, err
}

// NodeGroup reads one whole, as the administrator: demo may be locked out.
func (s *Stack) NodeGroup(ctx context.Context, cluster, name string) (g NodeGroup, err error) {
	err = s.ask(ctx, s.seed.admin, "GET", s.url("magnum", "/v1/clusters/"+url.PathEscape(cluster)+"/nodegroups/"+url.PathEscape(name)), nil, &g)
	return g, err
}

// NodeGroups lists those of a cluster, as far as a list tells of them.
func (s *Stack) NodeGroups(ctx context.Context, cluster string) ([]NodeGroup, error) {
	var doc struct{ NodeGroups []NodeGroup }
	err := s.Magnum(ctx, "GET", "/clusters/"+url.PathEscape(cluster)+"/nodegroups", nil, &doc)
	return doc.NodeGroups, err
}

// CreateNodeGroup adds a group to a cluster.
func (s *Stack) CreateNodeGroup(ctx context.Context, cluster string, g NodeGroup) error {
	return s.Magnum(ctx, "POST", "/clusters/"+url.PathEscape(cluster)+"/nodegroups", g, nil)
}

// DeleteNodeGroup takes a group from a cluster.
func (s *Stack) DeleteNodeGroup(ctx context.Context, cluster, name string) error {
	return s.Magnum(ctx, "DELETE", "/clusters/"+url.PathEscape(cluster)+"/nodegroups/"+url.PathEscape(name), nil, nil)
}

// ResizeNodeGroup asks for a node count, past the agent.
func (s *Stack) ResizeNodeGroup(ctx context.Context, cluster, group string, count int, remove ...string) error {
	return s.Magnum(ctx, "POST", "/clusters/"+url.PathEscape(cluster)+"/actions/resize", object{"node_count": count, "nodes_to_remove": append([]string{}, remove...), "nodegroup": group}, nil)
}

// Hold keeps every operation of Magnum's under way, until it is called again.
func (s *Stack) Hold(on bool) error {
	if on {
		return os.WriteFile(filepath.Join(s.drivers(), "hold"), nil, 0o600)
	}
	return os.Remove(filepath.Join(s.drivers(), "hold"))
}

// Resized is how many resizes Magnum's conductor has taken up so far. That of a group to
// the count that it has shows nowhere else.
func (s *Stack) Resized() int {
	text, _ := os.ReadFile(filepath.Join(s.drivers(), "resized"))
	return bytes.Count(text, []byte("\n"))
}

// DeleteCluster deletes one; that it is over is told by Cluster.
func (s *Stack) DeleteCluster(ctx context.Context, name string) error {
	return s.Magnum(ctx, "DELETE", "/clusters/"+url.PathEscape(name), nil, nil)
}

// RawMagnum makes one request as demo with a microversion, and returns what comes.
func (s *Stack) RawMagnum(ctx context.Context, version, method, path string, body any) (status int, header http.Header, text string, err error) {
	var raw []byte
	if body != nil {
		if raw, err = json.Marshal(body); err != nil {
			return 0, nil, "", err
		}
	}
	q, err := http.NewRequestWithContext(ctx, method, s.url("magnum", "/v1"+path), bytes.NewReader(raw))
	if err != nil {
		return 0, nil, "", err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("X-Auth-Token", s.seed.demo.token)
	q.Header.Set("OpenStack-API-Version", "container-infra "+version)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, nil, "", err
	}
	defer answer.Body.Close()
	whole, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header, string(whole), err
}
