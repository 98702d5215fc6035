package openstack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// options is one section of an ini file, "name = value" each.
type options []string

func (s *Stack) database(name string) string {
	return "mysql+pymysql://root@localhost/" + name + "?unix_socket=" + s.socket() + "&charset=utf8"
}

func (s *Stack) socket() string { return filepath.Join(s.dir, "mysql.sock") }

func (s *Stack) etc(name string) string { return filepath.Join(s.dir, "etc", name) }

func (s *Stack) url(service, path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", s.ports[service], path)
}

// account is how the services ask one another: all of them as the administrator.
func (s *Stack) account() options {
	return options{"auth_url = " + s.url("keystone", "/v3"), "auth_type = password", "username = admin", "password = " + password,
		"project_name = admin", "user_domain_id = default", "project_domain_id = default", "region_name = " + regionName}
}

// guard is how a service checks the tokens that it is given. It believes what Keystone
// said for five seconds (a third of all the work was Keystone's, when it was asked each
// time), and not for 300, Debian's own: EnableDemo waits until it is over. kind is the
// service's own type in the catalog: without it, a service takes no token that has access rules.
func (s *Stack) guard(kind string) options {
	return slices.Concat(options{"www_authenticate_uri = " + s.url("keystone", "/v3"), "token_cache_time = 5", "service_type = " + kind}, s.account())
}

func (s *Stack) writeConfiguration() error {
	transport := fmt.Sprintf("transport_url = rabbit://guest:guest@127.0.0.1:%d/", s.ports["rabbit"])
	connection := func(name string) options { return options{"connection = " + s.database(name)} }
	lock := options{"lock_path = " + filepath.Join(s.dir, "lock")}
	policy := func(service string) options {
		return options{"policy_dirs = " + s.etc("none"), "policy_file = " + s.policyFile(service)}
	}
	port := func(name, service string) string { return fmt.Sprintf("%s = %d", name, s.ports[service]) }
	var errs []error
	write := func(name string, sections map[string]options) {
		var b strings.Builder
		for _, section := range sortedKeys(sections) {
			b.WriteString("[" + section + "]\n" + strings.Join(sections[section], "\n") + "\n")
		}
		errs = append(errs, os.WriteFile(s.etc(name), []byte(b.String()), 0o600))
	}
	write("keystone.conf", map[string]options{
		"database": connection("keystone"), "token": {"provider = fernet"}, "identity": {"password_hash_rounds = 4"},
		"cache":         {"enabled = true", "backend = dogpile.cache.memory"},
		"fernet_tokens": {"key_repository = " + filepath.Join(s.dir, "keystone/fernet")}, "fernet_receipts": {"key_repository = " + filepath.Join(s.dir, "keystone/fernet")},
		"credential": {"key_repository = " + filepath.Join(s.dir, "keystone/credential")},
	})
	write("placement/placement.conf", map[string]options{"placement_database": connection("placement"), "keystone_authtoken": s.guard("placement")})
	write("glance.conf", map[string]options{
		"DEFAULT":  {"bind_host = 127.0.0.1", port("bind_port", "glance"), "workers = 0"},
		"database": connection("glance"), "keystone_authtoken": s.guard("image"), "oslo_concurrency": lock,
		"glance_store": {"stores = file", "default_store = file", "filesystem_store_datadir = " + filepath.Join(s.dir, "glance/images")},
		"paste_deploy": {"flavor = keystone", "config_file = /usr/share/glance-common/glance-api-paste.ini"},
	})
	write("nova.conf", map[string]options{
		"DEFAULT": {"host = control", "my_ip = 127.0.0.1", "state_path = " + filepath.Join(s.dir, "nova"), "instances_path = " + filepath.Join(s.dir, "nova/instances"),
			"compute_driver = fake.FakeDriver", transport, "enabled_apis = osapi_compute", "osapi_compute_listen = 127.0.0.1", port("osapi_compute_listen_port", "nova"),
			"osapi_compute_workers = 1", "report_interval = 5", "service_down_time = 300", "resume_guests_state_on_host_boot = false",
			"vif_plugging_is_fatal = false", "vif_plugging_timeout = 0", "periodic_fuzzy_delay = 0", "block_device_allocate_retries_interval = 1"},
		"wsgi": {"api_paste_config = /usr/share/nova-common/api-paste.ini"}, "conductor": {"workers = 1"},
		"scheduler": {"workers = 1", "discover_hosts_in_cells_interval = 3"}, "oslo_concurrency": lock, "vnc": {"enabled = false"},
		"glance": {"api_servers = " + s.url("glance", "")}, "placement": s.account(), "neutron": s.account(),
		"cinder": slices.Concat(options{"catalog_info = volumev3::internalURL"}, s.account()),
		// Without it Cinder refuses what Nova asks with the token of an application credential,
		// and every boot volume stays when its server is gone.
		"service_user": slices.Concat(options{"send_service_user_token = true"}, s.account()), "oslo_policy": policy("nova"), "keystone_authtoken": s.guard("compute"),
	})
	// The compute service must not know the databases.
	write("nova-db.conf", map[string]options{"api_database": connection("nova_api"), "database": connection("nova")})
	write("nova-compute.conf", map[string]options{"DEFAULT": {"host = " + computeHost}})
	write("neutron.conf", map[string]options{
		"DEFAULT": {"bind_host = 127.0.0.1", port("bind_port", "neutron"), "state_path = " + filepath.Join(s.dir, "neutron"), "core_plugin = ml2", "service_plugins =", transport,
			"api_workers = 0", "rpc_workers = 0", "rpc_state_report_workers = 0", "metadata_workers = 0", "api_paste_config = /usr/share/neutron-common/api-paste.ini",
			"notify_nova_on_port_status_changes = false", "notify_nova_on_port_data_changes = false", "dhcp_agent_notification = false", "agent_down_time = 2000000"},
		"database": connection("neutron"), "oslo_concurrency": lock, "oslo_policy": policy("neutron"), "keystone_authtoken": s.guard("network"),
	})
	write("ml2.ini", map[string]options{
		"ml2":           {"type_drivers = flat,vlan", "tenant_network_types = vlan", "mechanism_drivers = openvswitch", "extension_drivers = port_security"},
		"ml2_type_flat": {"flat_networks = *"}, "ml2_type_vlan": {"network_vlan_ranges = physnet1:100:999"}, "securitygroup": {"enable_security_group = true", "firewall_driver = noop"},
	})
	write("cinder.conf", s.cinderConfiguration(transport, lock, policy("cinder")))
	write("magnum.conf", s.magnumConfiguration(transport, lock, policy("magnum")))
	for _, service := range []string{"nova", "neutron", "cinder", "magnum"} {
		errs = append(errs, s.Policy(service, ""))
	}
	errs = append(errs, s.writeDriver(),
		os.WriteFile(s.etc("rabbitmq.conf"), fmt.Appendf(nil, "listeners.tcp.1 = 127.0.0.1:%d\nloopback_users = none\nvm_memory_high_watermark.absolute = 512MB\ndisk_free_limit.absolute = 50MB\nlog.file.level = warning\n", s.ports["rabbit"]), 0o600),
		os.WriteFile(s.etc("rabbitmq.plugins"), []byte("[].\n"), 0o600))
	return errors.Join(errs...)
}

func (s *Stack) policyFile(service string) string { return s.etc(service + "-policy.yaml") }

// Policy writes a service's policy file: rules in place of the service's own, as an
// operator would set them; empty: none. The service looks at the file with every request.
func (s *Stack) Policy(service, rules string) error {
	return os.WriteFile(s.policyFile(service), []byte(rules+"\n"), 0o600)
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}
