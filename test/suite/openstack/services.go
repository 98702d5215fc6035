package openstack

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
)

// computeHost is the one host that servers run on, as far as the fake driver runs them.
const computeHost = "host-1"

func (s *Stack) sql(ctx context.Context, name, database, text string) error {
	return s.run(ctx, name, nil, "mariadb", "--no-defaults", "-S", s.socket(), database, "-e", text)
}

// startBase starts the database, on its socket alone and without accounts, and the
// message queue, as a node of its own.
func (s *Stack) startBase(ctx context.Context) error {
	me, err := user.Current()
	if err != nil {
		return err
	}
	data := filepath.Join(s.dir, "mysql")
	if err := s.run(ctx, "mariadb-install", nil, "mariadb-install-db", "--no-defaults", "--datadir="+data, "--user="+me.Username, "--skip-test-db", "--auth-root-authentication-method=normal"); err != nil {
		return err
	}
	err = s.start("mariadb", nil, "mariadbd", "--no-defaults", "--datadir="+data, "--socket="+s.socket(), "--pid-file="+filepath.Join(s.dir, "mysql.pid"), "--user="+me.Username,
		"--skip-networking", "--skip-grant-tables", "--character-set-server=utf8mb3", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync",
		"--skip-log-bin", "--max-connections=500", "--innodb-buffer-pool-size=128M", "--performance-schema=OFF")
	if err != nil {
		return err
	}
	rabbit := filepath.Join(s.dir, "rabbit")
	err = s.start("rabbit", []string{"HOME=" + rabbit, fmt.Sprintf("ERL_EPMD_PORT=%d", s.ports["epmd"]), "ERL_EPMD_ADDRESS=127.0.0.1", "RABBITMQ_NODENAME=e2e@localhost",
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", s.ports["distribution"]), "RABBITMQ_MNESIA_BASE=" + filepath.Join(rabbit, "mnesia"), "RABBITMQ_LOG_BASE=" + filepath.Join(s.dir, "log"),
		"RABBITMQ_PID_FILE=" + filepath.Join(rabbit, "pid"), "RABBITMQ_CONFIG_FILE=" + s.etc("rabbitmq.conf"), "RABBITMQ_CONF_ENV_FILE=/nonexistent", "RABBITMQ_ENABLED_PLUGINS_FILE=" + s.etc("rabbitmq.plugins"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"},
		"/usr/lib/rabbitmq/bin/rabbitmq-server")
	if err != nil {
		return err
	}
	return s.until(ctx, "the database answers", func() error {
		if err := s.ended(); err != nil {
			return fmt.Errorf("%w: %w", errOver, err)
		}
		return s.sql(ctx, "mariadb-ping", "mysql", "select 1")
	})
}

// migrate makes every schema, those that do not need one another at once.
func (s *Stack) migrate(ctx context.Context) error {
	var create strings.Builder
	for _, name := range []string{"keystone", "placement", "glance", "nova_api", "nova", "nova_cell0", "neutron", "cinder", "magnum"} {
		create.WriteString("CREATE DATABASE " + name + " CHARACTER SET utf8mb3; ")
	}
	if err := s.sql(ctx, "mariadb-create", "mysql", create.String()); err != nil {
		return err
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	keystone := []string{"keystone-manage", "--config-file", s.etc("keystone.conf")}
	nova := []string{"nova-manage", "--config-file", s.etc("nova.conf"), "--config-file", s.etc("nova-db.conf")}
	url := s.url("keystone", "/v3")
	jobs := map[string][][]string{
		"sync-keystone": {
			append(keystone, "fernet_setup", "--keystone-user", me.Username, "--keystone-group", me.Username),
			append(keystone, "credential_setup", "--keystone-user", me.Username, "--keystone-group", me.Username),
			append(keystone, "db_sync"),
			append(keystone, "bootstrap", "--bootstrap-password", password, "--bootstrap-region-id", regionName,
				"--bootstrap-admin-url", url, "--bootstrap-public-url", url, "--bootstrap-internal-url", url),
		},
		"sync-nova": {
			append(nova, "api_db", "sync"), append(nova, "cell_v2", "map_cell0", "--database_connection", s.database("nova_cell0")),
			append(nova, "cell_v2", "create_cell", "--name", "cell1"), append(nova, "db", "sync"),
		},
		"sync-placement": {{"placement-manage", "--config-file", s.etc("placement/placement.conf"), "db", "sync"}},
		"sync-neutron":   {{"neutron-db-manage", "--config-file", s.etc("neutron.conf"), "--config-file", s.etc("ml2.ini"), "upgrade", "head"}},
		"sync-glance":    {{"glance-manage", "--config-file", s.etc("glance.conf"), "db_sync"}},
		"sync-cinder":    {{"cinder-manage", "--config-file", s.etc("cinder.conf"), "db", "sync"}},
		"sync-magnum":    {{"magnum-db-manage", "--config-file", s.etc("magnum.conf"), "upgrade"}},
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for name, commands := range jobs {
		wait.Go(func() {
			for _, args := range commands {
				if err := s.run(ctx, name, []string{"OS_PLACEMENT_CONFIG_DIR=" + s.etc("placement")}, args...); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (s *Stack) startKeystone(ctx context.Context) error {
	err := s.wsgi("keystone", []string{"OS_KEYSTONE_CONFIG_FILES=" + s.etc("keystone.conf")}, "from keystone.server import wsgi; application = wsgi.initialize_public_application()")
	if err != nil {
		return err
	}
	return s.answers(ctx, "keystone", "rabbit")
}

// startServices starts the rest. Neutron binds a port only on a host whose agent is
// alive: one is written into its table that never reports and is never taken for dead.
func (s *Stack) startServices(ctx context.Context) error {
	agent := `INSERT INTO agents (id, agent_type, ` + "`binary`" + `, topic, host, admin_state_up, created_at, started_at, heartbeat_timestamp, configurations, ` + "`load`" + `)
		VALUES (UUID(), 'Open vSwitch agent', 'neutron-openvswitch-agent', 'N/A', '` + computeHost + `', 1, NOW(), NOW(), UTC_TIMESTAMP(),
		'{"bridge_mappings": {"physnet1": "br-phys", "public": "br-ex"}, "tunnel_types": [], "datapath_type": "system", "ovs_hybrid_plug": false}', 0)`
	nova := []string{"--config-file", s.etc("nova.conf")}
	db := append(nova, "--config-file", s.etc("nova-db.conf"))
	err := errors.Join(
		s.sql(ctx, "neutron-agent", "neutron", agent),
		s.wsgi("placement", []string{"OS_PLACEMENT_CONFIG_DIR=" + s.etc("placement")}, "from placement import wsgi; application = wsgi.init_application()"),
		s.python("glance", "glance.cmd.api", "--config-file", s.etc("glance.conf")),
		s.python("neutron", "neutron.cmd.eventlet.server", "--config-file", s.etc("neutron.conf"), "--config-file", s.etc("ml2.ini")),
		s.python("nova-conductor", "nova.cmd.conductor", db...),
		s.startCinder(ctx),
		s.answers(ctx, "placement"),
		s.python("nova-compute", "nova.cmd.compute", append(nova, "--config-file", s.etc("nova-compute.conf"))...),
		s.python("nova-scheduler", "nova.cmd.scheduler", db...),
		s.python("nova", "nova.cmd.api", db...),
	)
	if err != nil {
		return err
	}
	return s.answers(ctx, "glance", "neutron", "nova")
}
