"""Every name that a second process, or a user, reads: groups, labels, annotations, managers."""

GROUP = "modelserve.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "ModelServe"
PLURAL = "modelserves"

EMULATOR_GROUP = "emulator.modelserve.dev"
POOL_KIND = "GPUPool"
POOL_PLURAL = "gpupools"

# Where our own processes live, unless told otherwise.
SYSTEM_NAMESPACE = "modelserve-system"
OPERATOR = "modelserve-operator"
GATEWAY = "modelserve-gateway"
EMULATOR = "modelserve-emulator"
OPERATOR_LEASE = "modelserve-operator"
TIME_CONFIG_MAP = "modelserve-time"  # data.timeScale
TIME_SCALE_KEY = "timeScale"

# Field managers of server-side apply.
MANAGER = "modelserve"  # everything about the children but the replica count
SCALER = "modelserve-scaler"  # the replica count, through /scale
STATUS_MANAGER = "modelserve-status"

# Labels.
LABEL_NAME = "app.kubernetes.io/name"  # always "modelserve"
LABEL_INSTANCE = "app.kubernetes.io/instance"  # the ModelServe's name
LABEL_COMPONENT = "app.kubernetes.io/component"  # "engine", "gateway", "operator", "emulator"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"  # "modelserve"
LABEL_MODELSERVE = f"{GROUP}/modelserve"  # on engine pods: the ModelServe's name
LABEL_VIRTUAL = f"{EMULATOR_GROUP}/virtual"  # "true" on emulated nodes
LABEL_POOL = f"{EMULATOR_GROUP}/pool"
LABEL_EMULATOR = f"{EMULATOR_GROUP}/emulator"  # on Leases of emulators that share nodes: "true"
LABEL_GPU_PRODUCT = "nvidia.com/gpu.product"
LABEL_GATEWAY = f"{GROUP}/gateway"  # on gateway Leases: "true"

# Pod template annotations: what a real engine would find in its surroundings.
STORAGE_CLASS = f"{GROUP}/storage-class"
READ_BANDWIDTH = f"{GROUP}/read-bandwidth"
LOADER = f"{GROUP}/loader"
IMAGE_SIZE = f"{GROUP}/image-size"
WARM_UP_SECONDS = f"{GROUP}/warm-up-seconds"
BATCHING = f"{GROUP}/batching"
QUEUE_LIMIT = f"{GROUP}/queue-limit"
MODEL_SHAPE = f"{GROUP}/model"
# JSON: what an engine's command line cannot say and the real one finds in its files.
ENGINE_LIMITS = f"{GROUP}/engine-limits"

# On the Deployment: what the catalogue resolved for this generation.
RESOLVED = f"{GROUP}/resolved"

# Written on pods by the emulator.
PHASES = f"{GROUP}/phases"  # JSON, see wire.PhaseStamps
CONDITION_STARTING = f"{GROUP}/Starting"
DIAL = f"{EMULATOR_GROUP}/dial"  # host:port where the engine of a virtual pod really listens
# Where metrics-server finds a node's /metrics/resource, if not there.
RESOURCE_METRICS_PATH = "metrics.k8s.io/resource-metrics-path"
BEHAVIOR = f"{EMULATOR_GROUP}/behavior"  # JSON by container name, for containers that are no engine
FAULTS = f"{EMULATOR_GROUP}/faults"  # JSON, see faults.Fault; on pods, nodes and pools
IMAGES = f"{EMULATOR_GROUP}/images"  # JSON by image: what its node and registry hold of it
GPUS = f"{EMULATOR_GROUP}/gpus"  # UUIDs of the GPUs a pod has, separated by commas
NODE_GPU = f"{EMULATOR_GROUP}/gpu"  # on emulated nodes: the GPU's key in the catalogue
NODE_GPU_COUNT = f"{EMULATOR_GROUP}/gpu-count"  # however they are cut, shared or handed out
NODE_MIG_PROFILE = f"{EMULATOR_GROUP}/mig-profile"  # whose slices its nvidia.com/gpu are
DEVICES_AT = f"{EMULATOR_GROUP}/devices-at"  # Unix seconds at which a new node has its GPUs
DRAIN_NOTICE = f"{EMULATOR_GROUP}/drain-notice-seconds"  # which it has when its pool is gone
GONE_AT = f"{EMULATOR_GROUP}/gone-at"  # Unix seconds at which a draining node is switched off

# On the Leases of emulated nodes, where several emulators share them: which one plays the node.
LEASE_HOLDER = f"{EMULATOR_GROUP}/holder"

# Node annotations: what limits a cold start there (quantities such as "250MB/s").
REGISTRY_BANDWIDTH = f"{GROUP}/registry-bandwidth"
REGISTRY_SHARED_BANDWIDTH = f"{GROUP}/registry-shared-bandwidth"  # emulated nodes only
LAYER_BANDWIDTH = f"{GROUP}/layer-bandwidth"  # of one layer's download
UNPACK_BANDWIDTH = f"{GROUP}/unpack-bandwidth"
STORAGE_READ_BANDWIDTH = f"{GROUP}/storage-read-bandwidth"
STORAGE_SHARED_BANDWIDTH = f"{GROUP}/storage-shared-bandwidth"
NETWORK_BANDWIDTH = f"{GROUP}/network-bandwidth"
PROVISIONING_SECONDS = f"{GROUP}/provisioning-seconds"  # of another node like this one
# JSON: bytes by weights that are in the node's page cache, the least recently read first.
WARM_WEIGHTS = f"{GROUP}/warm-weights"

# On a ModelServe: wake by hand.
WAKE = f"{GROUP}/wake"
AWAKE_UNTIL = f"{GROUP}/awake-until"

POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

# On a gateway's Lease.
GATEWAY_ADDRESS = f"{GROUP}/internal-address"
GATEWAY_EPOCH = f"{GROUP}/epoch"

ENGINE_CONTAINER = "engine"
ENGINE_PORT = 8000
ENGINE_PORT_NAME = "http"
