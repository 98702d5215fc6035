# What cloud-init does with user data: its own code for parts, templates, merging, commands,
# files and users, in the order of a first boot. Reads [{"name": ..., "data": base64}] from
# standard input and writes {name: verdict}. Three things are not left to cloud-init: nothing of
# the user data is run (of a script only its first line is, so that the kernel judges its form),
# files and owners land below a temporary directory, and #include gets a stand-in answer.
import base64, contextlib, io, json, logging, os, re, shutil, stat, subprocess, sys, tempfile

from cloudinit import stages, subp, url_helper, user_data, util
from cloudinit.config import cc_runcmd, cc_users_groups, cc_write_files, cc_write_files_deferred, schema
from cloudinit.sources import DataSourceNone

log = logging.getLogger()
INSTANCE = {
    "ds": {"meta_data": {k: "x" for k in "local_hostname instance_id ep endpoint token hash".split()}},
    "v1": {k: "x" for k in """cloud_name cloud_id platform subplatform region availability_zone instance_id local_hostname
        distro distro_version distro_release kernel_release machine python_version system_platform variant
        public_ssh_keys _beta_keys""".split()},
    "sys_info": {}, "merged_cfg": {}, "base64_encoded_keys": [], "sensitive_keys": [],
}


class Complaints(logging.Handler):
    def __init__(self):
        logging.Handler.__init__(self, logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


# kernel lets the kernel judge the first line of a script.
def kernel(text):
    fd, name = tempfile.mkstemp(dir="/tmp")
    with os.fdopen(fd, "w", errors="surrogateescape") as f:
        f.write(text.split("\n", 1)[0] + "\nexit 0\n")
    os.chmod(name, 0o700)
    try:
        subprocess.run([name], input=b"", capture_output=True)
    except OSError as e:
        return e.strerror
    finally:
        os.unlink(name)
    return ""


def read(name):
    with open(name, errors="surrogateescape") as f:
        return f.read()


class Judge:
    def __init__(self, root):
        self.root, self.files, self.hooks, self.early = root, {}, {}, set()
        init = stages.Init()
        init._cfg = {"system_info": {"distro": "debian", "default_user": {"name": "debian"}, "paths": {"cloud_dir": root + "/lib", "run_dir": root + "/run"}}}
        init.datasource = DataSourceNone.DataSourceNone({}, init.distro, init.paths)
        init.datasource.get_instance_id = lambda: "i-1"
        init.paths.datasource = init.datasource
        os.makedirs(root + "/run", exist_ok=True)
        os.makedirs(root + "/lib/instances/i-1/handlers")
        os.makedirs(root + "/lib/instance")
        with open(init.paths.get_runpath("instance_data_sensitive"), "w") as f:
            json.dump(INSTANCE, f)
        self.init = init
        self.cloud = init.cloudify()

    # hook takes the place of the run of a boothook.
    def hook(self, args, **_):
        text = read(args[0])
        self.hooks[os.path.basename(args[0])] = kernel(text)
        if kernel(text):
            raise subp.ProcessExecutionError(cmd=args, errno=8)
        return subp.SubpResult("", "")

    def write(self, path, content, *args, **kwargs):
        util_write(self.root + "/files" + path, content, *args, **kwargs)
        s = os.stat(self.root + "/files" + path)
        self.files[path] = {"mode": "%04o" % stat.S_IMODE(s.st_mode), "content": read(self.root + "/files" + path)}

    # chown looks up names, but for accounts that bootcmd would have made.
    def chown(self, path, *names):
        util_chown(self.root + "/files" + path, *[None if n in self.early else n for n in names])

    def module(self, verdict, name, handle, cfg):
        try:
            handle(name, cfg, self.cloud, log, [])
        except Exception as e:
            verdict["refused"][name] = "%s: %s" % (type(e).__name__, e)

    def scripts(self):
        out = {}
        for where, dirs, names in os.walk(self.root + "/lib"):
            for n in names:
                if "/scripts" in where:
                    out[n] = {"where": os.path.basename(where), "form": kernel(read(where + "/" + n)), "text": read(where + "/" + n)}
        return out

    def verdict(self, data):
        v = {"refused": {}, "config": None, "schema": ""}
        complaints = Complaints()
        log.addHandler(complaints)
        try:
            message = user_data.UserDataProcessor(self.init.paths).process(data)
            v["types"] = [p.get_content_type() for p in message.walk()][1:]
            self.init._do_handlers(message, self.init._default_handlers(), "once-per-instance")
        except Exception as e:
            v["refused"]["user-data"] = "%s: %s" % (type(e).__name__, e)
        v["complaints"] = complaints.lines[:]
        merged = self.init.paths.get_ipath("cloud_config")
        if os.path.exists(merged):
            v["config"] = util.load_yaml(read(merged) or "{}") or None
        if v["config"]:
            self.modules(v)
        log.removeHandler(complaints)
        v["late"] = complaints.lines[len(v["complaints"]):]
        v["files"], v["hooks"], v["scripts"] = self.files, self.hooks, self.scripts()
        v["config"] = v["config"] and sorted(map(str, v["config"]))
        return v

    # modules are those that a join rests on, as cloud.cfg orders them: users are made after files.
    def modules(self, v):
        cfg = v["config"]
        try:
            schema.validate_cloudconfig_schema(cfg, strict=True)
        except Exception as e:
            v["schema"] = str(e)
        if "bootcmd" in cfg:  # cc_bootcmd would run it
            self.early = set(re.findall(r"(?:useradd|groupadd)[^\n;&|]*?([\w-]+)\s*$", str(cfg["bootcmd"]).strip("[]'"), re.M))
            self.module(v, "bootcmd", lambda *_: util.write_file(self.root + "/lib/scripts/bootcmd", util.shellify(cfg["bootcmd"])), cfg)
        self.module(v, "write_files", cc_write_files.handle, cfg)
        made = []
        self.cloud.distro.create_user = lambda name, **_: made.append(name)
        self.cloud.distro.create_group = lambda name, *_: made.append(name)
        self.cloud.get_public_ssh_keys = lambda: []
        if "users" in cfg or "user" in cfg or "groups" in cfg:
            self.module(v, "users", cc_users_groups.handle, cfg)
        v["made"] = made
        self.module(v, "runcmd", cc_runcmd.handle, cfg)
        known = util.chownbyname
        util.chownbyname = lambda *_: None  # who is made, or comes with a package, is there now
        self.module(v, "write_files_deferred", cc_write_files_deferred.handle, cfg)
        util.chownbyname = known


def judge(data):
    root = tempfile.mkdtemp(dir="/tmp")
    sys.path[:] = paths
    for name in [m for m in sys.modules if m.startswith("part-handler")]:
        del sys.modules[name]
    j = Judge(root)
    subp.subp, util.write_file, util.chownbyname = j.hook, plain(j, util_write), j.chown
    try:
        return j.verdict(data)
    finally:
        subp.subp, util.write_file, util.chownbyname = run, util_write, util_chown
        shutil.rmtree(root)


# plain sends what cloud-init writes for itself to its place, and the rest below files.
def plain(j, write):
    def to(path, content, *args, **kwargs):
        if str(path).startswith(j.root):
            return write(path, content, *args, **kwargs)
        return j.write(path, content, *args, **kwargs)
    return to


def included(url, **_):
    if not url.lower().startswith(("http://", "https://", "file://", "/")):
        return fetch(url, retries=0, timeout=1)  # cloud-init's own answer, which needs no network
    return url_helper.StringResponse(b"#cloud-config\nhostname: included\n")


run, util_write, util_chown, fetch = subp.subp, util.write_file, util.chownbyname, url_helper.read_file_or_url
user_data.read_file_or_url = included
paths = sys.path[:]
out = {}
with contextlib.redirect_stdout(io.StringIO()):
    for case in json.load(sys.stdin):
        out[case["name"]] = judge(base64.b64decode(case["data"]))
json.dump(out, sys.stdout, indent=1, sort_keys=True)
