/** Texts of risk hints. */
import { defineTexts } from "../app/texts";

export const useRiskTexts = defineTexts(
  {
    delete: "deletes files", delete_all: "deletes everything in a place that matters", remote_code: "runs code straight from the network",
    decoded_code: "runs code that was encoded, so that it cannot be read here", root: "runs with the rights of an administrator", rights: "changes who may read, write or run files",
    disk: "writes to a disk past its files", fork_bomb: "starts itself again and again, until the machine stands still", force_push: "overwrites or deletes what others have pushed",
    lost_work: "throws away work that was not saved", secrets: "reads keys, passwords or the environment", network: "talks to the network", upload: "sends data to another machine",
    reverse_shell: "opens a shell to another machine", overwrite: "may replace a file", system: "changes files of the system", outside: "reaches outside of the working directory",
    persistence: "starts again by itself, later", stop: "ends other programs or the machine", install: "installs or runs packages of others", container: "breaks the walls of a container",
    infrastructure: "changes servers, clusters or published packages", database: "deletes or changes data for good", disguise: "hides what it runs", background: "goes on running in the background",
    nested: "runs a command made by another one", lines: "has several lines, and each is run", firewall: "changes what protects the machine", accounts: "changes users or passwords", traces: "removes traces of what was done",
    path_up: "leads out of the directory with “..”", path_absolute: "is an absolute path", path_home: "is in the home directory", path_odd: "is written in an unusual way", path_secret: "is where keys or passwords are kept", path_runs: "is a file that is run by itself later",
    url_inside: "is an address inside of your network", url_login: "has a name before the @: the host is what follows it", url_disguise: "the host is written so that it may look like another", url_plain: "is not encrypted", url_scheme: "is no web address", url_long: "carries much text in the address",
    high: "Look closely", look: "Note", none: "Hints are not complete: read what would run.",
  },
  {
    delete: "会删除文件", delete_all: "会删除重要位置的全部内容", remote_code: "直接运行来自网络的代码",
    decoded_code: "运行经过编码、在此无法读懂的代码", root: "以管理员权限运行", rights: "更改文件的读写或执行权限",
    disk: "绕过文件直接写磁盘", fork_bomb: "不断复制自身，直到机器瘫痪", force_push: "覆盖或删除他人已推送的内容",
    lost_work: "丢弃尚未保存的工作", secrets: "读取密钥、密码或环境变量", network: "访问网络", upload: "把数据发送到其他机器",
    reverse_shell: "向其他机器打开一个 shell", overwrite: "可能替换已有文件", system: "更改系统文件", outside: "触及工作目录之外",
    persistence: "以后会自行再次启动", stop: "终止其他程序或关闭机器", install: "安装或运行第三方软件包", container: "突破容器的隔离",
    infrastructure: "更改服务器、集群或已发布的软件包", database: "永久删除或更改数据", disguise: "隐藏真正运行的内容", background: "在后台继续运行",
    nested: "运行由另一条命令生成的命令", lines: "有多行，每一行都会执行", firewall: "更改保护机器的设置", accounts: "更改用户或密码", traces: "清除操作痕迹",
    path_up: "用“..”离开了目录", path_absolute: "是绝对路径", path_home: "位于主目录", path_odd: "写法不寻常", path_secret: "是存放密钥或密码的地方", path_runs: "是以后会自动运行的文件",
    url_inside: "是内网地址", url_login: "@ 之前是名字，真正的主机在其后", url_disguise: "主机名的写法可能冒充其他主机", url_plain: "未加密", url_scheme: "不是网页地址", url_long: "地址中携带大量文字",
    high: "请仔细看", look: "注意", none: "提示并不完整：请阅读将要执行的内容。",
  },
);
