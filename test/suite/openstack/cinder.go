package openstack

import (
	"context"
	_ "embed" // the driver
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
)

// Debian's Cinder wants LVM, iSCSI and root. The volumes here are made by a driver of this
// package's own that makes nothing, for servers that are nothing either. All else, from
// the quota to the attachment that keeps a volume from being deleted, is Cinder's.
//
//go:embed driver/e2e_volumes.py
var volumeDriver []byte

func (s *Stack) cinderConfiguration(transport string, lock, policy options) map[string]options {
	return map[string]options{
		"DEFAULT": {"host = " + computeHost, "my_ip = 127.0.0.1", transport, "state_path = " + filepath.Join(s.dir, "cinder"), "auth_strategy = keystone",
			"osapi_volume_listen = 127.0.0.1", "osapi_volume_listen_port = " + strconv.Itoa(s.ports["cinder"]), "osapi_volume_workers = 1",
			"api_paste_config = /usr/share/cinder-common/api-paste.ini", "resource_query_filters_file = /etc/cinder/resource_filters.json",
			"enabled_backends = e2e", "glance_api_servers = " + s.url("glance", ""), "service_down_time = 300", "periodic_fuzzy_delay = 0"},
		"e2e":          {"volume_driver = e2e_volumes.Driver", "volume_backend_name = e2e"},
		"coordination": {"backend_url = file://" + filepath.Join(s.dir, "lock")},
		"database":     {"connection = " + s.database("cinder")}, "oslo_concurrency": lock, "oslo_policy": policy,
		"keystone_authtoken": append(s.guard("volumev3"), "service_token_roles = admin", "service_token_roles_required = true"),
		// Cinder asks Glance for the image of a boot volume with the token that Nova was given.
		"service_user": append(s.account(), "send_service_user_token = true"),
	}
}

func (s *Stack) startCinder(context.Context) error {
	var errs []error
	for name, module := range map[string]string{"cinder": "cinder.cmd.api", "cinder-scheduler": "cinder.cmd.scheduler", "cinder-volume": "cinder.cmd.volume"} {
		code := fmt.Sprintf("import sys; sys.argv[0]=%q; from %s import main; sys.exit(main())", name, module)
		errs = append(errs, s.start(name, []string{"PYTHONPATH=" + s.drivers()}, "/usr/bin/python3", "-c", code, "--config-file", s.etc("cinder.conf")))
	}
	return errors.Join(errs...)
}

// fillCinder gives demo a quota and waits until volumes can be made.
func (s *Stack) fillCinder(ctx context.Context) error {
	if err := s.answers(ctx, "cinder"); err != nil {
		return err
	}
	if _, err := s.seed.admin.do(ctx, "PUT", s.url("cinder", "/v3/os-quota-sets/"+s.seed.Project), object{"quota_set": object{"volumes": 100, "gigabytes": -1}}, nil); err != nil {
		return err
	}
	return s.until(ctx, "Cinder has a place for volumes", func() error {
		var list struct {
			Services []struct{ Binary, State string }
		}
		if _, err := s.seed.admin.do(ctx, "GET", s.url("cinder", "/v3/os-services"), nil, &list); err != nil {
			return err
		}
		up := map[string]bool{}
		for _, one := range list.Services {
			up[one.Binary] = one.State == "up"
		}
		if gone := s.ended(); gone != nil {
			return fmt.Errorf("%w: %w", errOver, gone)
		}
		if !up["cinder-volume"] || !up["cinder-scheduler"] {
			return fmt.Errorf("up are %v", up)
		}
		return nil
	})
}

// Volumes lists the volumes of every project, by name and state.
func (s *Stack) Volumes(ctx context.Context) ([]string, error) {
	var doc struct {
		Volumes []struct{ ID, Name, Status string }
	}
	err := s.ask(ctx, s.seed.admin, "GET", s.url("cinder", "/v3/volumes/detail?all_tenants=1"), nil, &doc)
	var out []string
	for _, v := range doc.Volumes {
		out = append(out, v.ID+" "+v.Name+" "+v.Status)
	}
	return out, err
}
