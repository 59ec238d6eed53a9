// Written by shim/generate/generate.py from cuda.h and classes.toml. Do not edit.

use std::ffi::c_void;

use crate::abi::{Handle, IpcHandle, MemLocation};
use crate::table::{Entry, Wrapper};
use crate::{driver, gate, moment};

#[rustfmt::skip]
/// Entry points by number: an [`Entry`] is an index of [`NAMES`], which is sorted.
#[allow(missing_docs, dead_code)]
pub mod ids {
    use crate::table::Entry;
    pub const CU_ARRAY3_DCREATE: Entry = Entry(0);
    pub const CU_ARRAY3_DCREATE_V2: Entry = Entry(1);
    pub const CU_ARRAY3_DGET_DESCRIPTOR: Entry = Entry(2);
    pub const CU_ARRAY3_DGET_DESCRIPTOR_V2: Entry = Entry(3);
    pub const CU_ARRAY_CREATE: Entry = Entry(4);
    pub const CU_ARRAY_CREATE_V2: Entry = Entry(5);
    pub const CU_ARRAY_DESTROY: Entry = Entry(6);
    pub const CU_ARRAY_GET_DESCRIPTOR: Entry = Entry(7);
    pub const CU_ARRAY_GET_DESCRIPTOR_V2: Entry = Entry(8);
    pub const CU_ARRAY_GET_MEMORY_REQUIREMENTS: Entry = Entry(9);
    pub const CU_ARRAY_GET_PLANE: Entry = Entry(10);
    pub const CU_ARRAY_GET_SPARSE_PROPERTIES: Entry = Entry(11);
    pub const CU_CHECKPOINT_OPERATION_COMPLETE: Entry = Entry(12);
    pub const CU_CHECKPOINT_PROCESS_CHECKPOINT: Entry = Entry(13);
    pub const CU_CHECKPOINT_PROCESS_GET_RESTORE_THREAD_ID: Entry = Entry(14);
    pub const CU_CHECKPOINT_PROCESS_GET_STATE: Entry = Entry(15);
    pub const CU_CHECKPOINT_PROCESS_LOCK: Entry = Entry(16);
    pub const CU_CHECKPOINT_PROCESS_RESTORE: Entry = Entry(17);
    pub const CU_CHECKPOINT_PROCESS_UNLOCK: Entry = Entry(18);
    pub const CU_COREDUMP_DEREGISTER_COMPLETE_CALLBACK: Entry = Entry(19);
    pub const CU_COREDUMP_DEREGISTER_START_CALLBACK: Entry = Entry(20);
    pub const CU_COREDUMP_GET_ATTRIBUTE: Entry = Entry(21);
    pub const CU_COREDUMP_GET_ATTRIBUTE_GLOBAL: Entry = Entry(22);
    pub const CU_COREDUMP_REGISTER_COMPLETE_CALLBACK: Entry = Entry(23);
    pub const CU_COREDUMP_REGISTER_START_CALLBACK: Entry = Entry(24);
    pub const CU_COREDUMP_SET_ATTRIBUTE: Entry = Entry(25);
    pub const CU_COREDUMP_SET_ATTRIBUTE_GLOBAL: Entry = Entry(26);
    pub const CU_CTX_ATTACH: Entry = Entry(27);
    pub const CU_CTX_CREATE: Entry = Entry(28);
    pub const CU_CTX_CREATE_V2: Entry = Entry(29);
    pub const CU_CTX_CREATE_V3: Entry = Entry(30);
    pub const CU_CTX_CREATE_V4: Entry = Entry(31);
    pub const CU_CTX_DESTROY: Entry = Entry(32);
    pub const CU_CTX_DESTROY_V2: Entry = Entry(33);
    pub const CU_CTX_DETACH: Entry = Entry(34);
    pub const CU_CTX_DISABLE_PEER_ACCESS: Entry = Entry(35);
    pub const CU_CTX_ENABLE_PEER_ACCESS: Entry = Entry(36);
    pub const CU_CTX_FROM_GREEN_CTX: Entry = Entry(37);
    pub const CU_CTX_GET_API_VERSION: Entry = Entry(38);
    pub const CU_CTX_GET_CACHE_CONFIG: Entry = Entry(39);
    pub const CU_CTX_GET_CURRENT: Entry = Entry(40);
    pub const CU_CTX_GET_DEV_RESOURCE: Entry = Entry(41);
    pub const CU_CTX_GET_DEVICE: Entry = Entry(42);
    pub const CU_CTX_GET_DEVICE_V2: Entry = Entry(43);
    pub const CU_CTX_GET_EXEC_AFFINITY: Entry = Entry(44);
    pub const CU_CTX_GET_FLAGS: Entry = Entry(45);
    pub const CU_CTX_GET_ID: Entry = Entry(46);
    pub const CU_CTX_GET_LIMIT: Entry = Entry(47);
    pub const CU_CTX_GET_SHARED_MEM_CONFIG: Entry = Entry(48);
    pub const CU_CTX_GET_STREAM_PRIORITY_RANGE: Entry = Entry(49);
    pub const CU_CTX_POP_CURRENT: Entry = Entry(50);
    pub const CU_CTX_POP_CURRENT_V2: Entry = Entry(51);
    pub const CU_CTX_PUSH_CURRENT: Entry = Entry(52);
    pub const CU_CTX_PUSH_CURRENT_V2: Entry = Entry(53);
    pub const CU_CTX_RECORD_EVENT: Entry = Entry(54);
    pub const CU_CTX_RESET_PERSISTING_L2_CACHE: Entry = Entry(55);
    pub const CU_CTX_SET_CACHE_CONFIG: Entry = Entry(56);
    pub const CU_CTX_SET_CURRENT: Entry = Entry(57);
    pub const CU_CTX_SET_FLAGS: Entry = Entry(58);
    pub const CU_CTX_SET_LIMIT: Entry = Entry(59);
    pub const CU_CTX_SET_SHARED_MEM_CONFIG: Entry = Entry(60);
    pub const CU_CTX_SYNCHRONIZE: Entry = Entry(61);
    pub const CU_CTX_SYNCHRONIZE_V2: Entry = Entry(62);
    pub const CU_CTX_WAIT_EVENT: Entry = Entry(63);
    pub const CU_DESTROY_EXTERNAL_MEMORY: Entry = Entry(64);
    pub const CU_DESTROY_EXTERNAL_SEMAPHORE: Entry = Entry(65);
    pub const CU_DEV_RESOURCE_GENERATE_DESC: Entry = Entry(66);
    pub const CU_DEV_SM_RESOURCE_SPLIT: Entry = Entry(67);
    pub const CU_DEV_SM_RESOURCE_SPLIT_BY_COUNT: Entry = Entry(68);
    pub const CU_DEVICE_CAN_ACCESS_PEER: Entry = Entry(69);
    pub const CU_DEVICE_COMPUTE_CAPABILITY: Entry = Entry(70);
    pub const CU_DEVICE_GET: Entry = Entry(71);
    pub const CU_DEVICE_GET_ATTRIBUTE: Entry = Entry(72);
    pub const CU_DEVICE_GET_BY_PCIBUS_ID: Entry = Entry(73);
    pub const CU_DEVICE_GET_CLIQUE_COUNT: Entry = Entry(74);
    pub const CU_DEVICE_GET_CLIQUE_INFO: Entry = Entry(75);
    pub const CU_DEVICE_GET_COUNT: Entry = Entry(76);
    pub const CU_DEVICE_GET_DEFAULT_MEM_POOL: Entry = Entry(77);
    pub const CU_DEVICE_GET_DEV_RESOURCE: Entry = Entry(78);
    pub const CU_DEVICE_GET_EXEC_AFFINITY_SUPPORT: Entry = Entry(79);
    pub const CU_DEVICE_GET_FABRIC_CLUSTER_UUID: Entry = Entry(80);
    pub const CU_DEVICE_GET_GRAPH_MEM_ATTRIBUTE: Entry = Entry(81);
    pub const CU_DEVICE_GET_HOST_ATOMIC_CAPABILITIES: Entry = Entry(82);
    pub const CU_DEVICE_GET_LUID: Entry = Entry(83);
    pub const CU_DEVICE_GET_MEM_POOL: Entry = Entry(84);
    pub const CU_DEVICE_GET_NAME: Entry = Entry(85);
    pub const CU_DEVICE_GET_NV_SCI_SYNC_ATTRIBUTES: Entry = Entry(86);
    pub const CU_DEVICE_GET_P2_PATOMIC_CAPABILITIES: Entry = Entry(87);
    pub const CU_DEVICE_GET_P2_PATTRIBUTE: Entry = Entry(88);
    pub const CU_DEVICE_GET_PCIBUS_ID: Entry = Entry(89);
    pub const CU_DEVICE_GET_PROPERTIES: Entry = Entry(90);
    pub const CU_DEVICE_GET_TEXTURE1_DLINEAR_MAX_WIDTH: Entry = Entry(91);
    pub const CU_DEVICE_GET_UUID: Entry = Entry(92);
    pub const CU_DEVICE_GET_UUID_V2: Entry = Entry(93);
    pub const CU_DEVICE_GRAPH_MEM_TRIM: Entry = Entry(94);
    pub const CU_DEVICE_PRIMARY_CTX_GET_STATE: Entry = Entry(95);
    pub const CU_DEVICE_PRIMARY_CTX_RELEASE: Entry = Entry(96);
    pub const CU_DEVICE_PRIMARY_CTX_RELEASE_V2: Entry = Entry(97);
    pub const CU_DEVICE_PRIMARY_CTX_RESET: Entry = Entry(98);
    pub const CU_DEVICE_PRIMARY_CTX_RESET_V2: Entry = Entry(99);
    pub const CU_DEVICE_PRIMARY_CTX_RETAIN: Entry = Entry(100);
    pub const CU_DEVICE_PRIMARY_CTX_SET_FLAGS: Entry = Entry(101);
    pub const CU_DEVICE_PRIMARY_CTX_SET_FLAGS_V2: Entry = Entry(102);
    pub const CU_DEVICE_REGISTER_ASYNC_NOTIFICATION: Entry = Entry(103);
    pub const CU_DEVICE_SET_GRAPH_MEM_ATTRIBUTE: Entry = Entry(104);
    pub const CU_DEVICE_SET_MEM_POOL: Entry = Entry(105);
    pub const CU_DEVICE_TOTAL_MEM: Entry = Entry(106);
    pub const CU_DEVICE_TOTAL_MEM_V2: Entry = Entry(107);
    pub const CU_DEVICE_UNREGISTER_ASYNC_NOTIFICATION: Entry = Entry(108);
    pub const CU_DRIVER_GET_VERSION: Entry = Entry(109);
    pub const CU_EVENT_CREATE: Entry = Entry(110);
    pub const CU_EVENT_DESTROY: Entry = Entry(111);
    pub const CU_EVENT_DESTROY_V2: Entry = Entry(112);
    pub const CU_EVENT_ELAPSED_TIME: Entry = Entry(113);
    pub const CU_EVENT_ELAPSED_TIME_V2: Entry = Entry(114);
    pub const CU_EVENT_QUERY: Entry = Entry(115);
    pub const CU_EVENT_RECORD: Entry = Entry(116);
    pub const CU_EVENT_RECORD_WITH_FLAGS: Entry = Entry(117);
    pub const CU_EVENT_RECORD_WITH_FLAGS_PTSZ: Entry = Entry(118);
    pub const CU_EVENT_RECORD_PTSZ: Entry = Entry(119);
    pub const CU_EVENT_SYNCHRONIZE: Entry = Entry(120);
    pub const CU_EXTERNAL_MEMORY_GET_MAPPED_BUFFER: Entry = Entry(121);
    pub const CU_EXTERNAL_MEMORY_GET_MAPPED_MIPMAPPED_ARRAY: Entry = Entry(122);
    pub const CU_FABRIC_CPY_BATCH_ASYNC: Entry = Entry(123);
    pub const CU_FABRIC_CPY_BATCH_ASYNC_PTSZ: Entry = Entry(124);
    pub const CU_FLUSH_GPUDIRECT_RDMAWRITES: Entry = Entry(125);
    pub const CU_FUNC_GET_ATTRIBUTE: Entry = Entry(126);
    pub const CU_FUNC_GET_MODULE: Entry = Entry(127);
    pub const CU_FUNC_GET_NAME: Entry = Entry(128);
    pub const CU_FUNC_GET_PARAM_COUNT: Entry = Entry(129);
    pub const CU_FUNC_GET_PARAM_INFO: Entry = Entry(130);
    pub const CU_FUNC_IS_LOADED: Entry = Entry(131);
    pub const CU_FUNC_LOAD: Entry = Entry(132);
    pub const CU_FUNC_SET_ATTRIBUTE: Entry = Entry(133);
    pub const CU_FUNC_SET_BLOCK_SHAPE: Entry = Entry(134);
    pub const CU_FUNC_SET_CACHE_CONFIG: Entry = Entry(135);
    pub const CU_FUNC_SET_SHARED_MEM_CONFIG: Entry = Entry(136);
    pub const CU_FUNC_SET_SHARED_SIZE: Entry = Entry(137);
    pub const CU_GET_ERROR_NAME: Entry = Entry(138);
    pub const CU_GET_ERROR_STRING: Entry = Entry(139);
    pub const CU_GET_EXPORT_TABLE: Entry = Entry(140);
    pub const CU_GET_PROC_ADDRESS: Entry = Entry(141);
    pub const CU_GET_PROC_ADDRESS_V2: Entry = Entry(142);
    pub const CU_GRAPH_ADD_BATCH_MEM_OP_NODE: Entry = Entry(143);
    pub const CU_GRAPH_ADD_CHILD_GRAPH_NODE: Entry = Entry(144);
    pub const CU_GRAPH_ADD_DEPENDENCIES: Entry = Entry(145);
    pub const CU_GRAPH_ADD_DEPENDENCIES_V2: Entry = Entry(146);
    pub const CU_GRAPH_ADD_EMPTY_NODE: Entry = Entry(147);
    pub const CU_GRAPH_ADD_EVENT_RECORD_NODE: Entry = Entry(148);
    pub const CU_GRAPH_ADD_EVENT_WAIT_NODE: Entry = Entry(149);
    pub const CU_GRAPH_ADD_EXTERNAL_SEMAPHORES_SIGNAL_NODE: Entry = Entry(150);
    pub const CU_GRAPH_ADD_EXTERNAL_SEMAPHORES_WAIT_NODE: Entry = Entry(151);
    pub const CU_GRAPH_ADD_HOST_NODE: Entry = Entry(152);
    pub const CU_GRAPH_ADD_KERNEL_NODE: Entry = Entry(153);
    pub const CU_GRAPH_ADD_KERNEL_NODE_V2: Entry = Entry(154);
    pub const CU_GRAPH_ADD_MEM_ALLOC_NODE: Entry = Entry(155);
    pub const CU_GRAPH_ADD_MEM_FREE_NODE: Entry = Entry(156);
    pub const CU_GRAPH_ADD_MEMCPY_NODE: Entry = Entry(157);
    pub const CU_GRAPH_ADD_MEMSET_NODE: Entry = Entry(158);
    pub const CU_GRAPH_ADD_NODE: Entry = Entry(159);
    pub const CU_GRAPH_ADD_NODE_V2: Entry = Entry(160);
    pub const CU_GRAPH_ADD_NODE_V3: Entry = Entry(161);
    pub const CU_GRAPH_BATCH_MEM_OP_NODE_GET_PARAMS: Entry = Entry(162);
    pub const CU_GRAPH_BATCH_MEM_OP_NODE_SET_PARAMS: Entry = Entry(163);
    pub const CU_GRAPH_CHILD_GRAPH_NODE_GET_GRAPH: Entry = Entry(164);
    pub const CU_GRAPH_CLONE: Entry = Entry(165);
    pub const CU_GRAPH_CONDITIONAL_HANDLE_CREATE: Entry = Entry(166);
    pub const CU_GRAPH_CREATE: Entry = Entry(167);
    pub const CU_GRAPH_DEBUG_DOT_PRINT: Entry = Entry(168);
    pub const CU_GRAPH_DESTROY: Entry = Entry(169);
    pub const CU_GRAPH_DESTROY_NODE: Entry = Entry(170);
    pub const CU_GRAPH_EVENT_RECORD_NODE_GET_EVENT: Entry = Entry(171);
    pub const CU_GRAPH_EVENT_RECORD_NODE_SET_EVENT: Entry = Entry(172);
    pub const CU_GRAPH_EVENT_WAIT_NODE_GET_EVENT: Entry = Entry(173);
    pub const CU_GRAPH_EVENT_WAIT_NODE_SET_EVENT: Entry = Entry(174);
    pub const CU_GRAPH_EXEC_BATCH_MEM_OP_NODE_SET_PARAMS: Entry = Entry(175);
    pub const CU_GRAPH_EXEC_CHILD_GRAPH_NODE_SET_PARAMS: Entry = Entry(176);
    pub const CU_GRAPH_EXEC_DESTROY: Entry = Entry(177);
    pub const CU_GRAPH_EXEC_EVENT_RECORD_NODE_SET_EVENT: Entry = Entry(178);
    pub const CU_GRAPH_EXEC_EVENT_WAIT_NODE_SET_EVENT: Entry = Entry(179);
    pub const CU_GRAPH_EXEC_EXTERNAL_SEMAPHORES_SIGNAL_NODE_SET_PARAMS: Entry = Entry(180);
    pub const CU_GRAPH_EXEC_EXTERNAL_SEMAPHORES_WAIT_NODE_SET_PARAMS: Entry = Entry(181);
    pub const CU_GRAPH_EXEC_GET_FLAGS: Entry = Entry(182);
    pub const CU_GRAPH_EXEC_GET_ID: Entry = Entry(183);
    pub const CU_GRAPH_EXEC_HOST_NODE_SET_PARAMS: Entry = Entry(184);
    pub const CU_GRAPH_EXEC_KERNEL_NODE_SET_PARAMS: Entry = Entry(185);
    pub const CU_GRAPH_EXEC_KERNEL_NODE_SET_PARAMS_V2: Entry = Entry(186);
    pub const CU_GRAPH_EXEC_MEMCPY_NODE_SET_PARAMS: Entry = Entry(187);
    pub const CU_GRAPH_EXEC_MEMSET_NODE_SET_PARAMS: Entry = Entry(188);
    pub const CU_GRAPH_EXEC_NODE_SET_PARAMS: Entry = Entry(189);
    pub const CU_GRAPH_EXEC_UPDATE: Entry = Entry(190);
    pub const CU_GRAPH_EXEC_UPDATE_V2: Entry = Entry(191);
    pub const CU_GRAPH_EXTERNAL_SEMAPHORES_SIGNAL_NODE_GET_PARAMS: Entry = Entry(192);
    pub const CU_GRAPH_EXTERNAL_SEMAPHORES_SIGNAL_NODE_SET_PARAMS: Entry = Entry(193);
    pub const CU_GRAPH_EXTERNAL_SEMAPHORES_WAIT_NODE_GET_PARAMS: Entry = Entry(194);
    pub const CU_GRAPH_EXTERNAL_SEMAPHORES_WAIT_NODE_SET_PARAMS: Entry = Entry(195);
    pub const CU_GRAPH_GET_EDGES: Entry = Entry(196);
    pub const CU_GRAPH_GET_EDGES_V2: Entry = Entry(197);
    pub const CU_GRAPH_GET_ID: Entry = Entry(198);
    pub const CU_GRAPH_GET_NODES: Entry = Entry(199);
    pub const CU_GRAPH_GET_ROOT_NODES: Entry = Entry(200);
    pub const CU_GRAPH_HOST_NODE_GET_PARAMS: Entry = Entry(201);
    pub const CU_GRAPH_HOST_NODE_SET_PARAMS: Entry = Entry(202);
    pub const CU_GRAPH_INSTANTIATE: Entry = Entry(203);
    pub const CU_GRAPH_INSTANTIATE_WITH_FLAGS: Entry = Entry(204);
    pub const CU_GRAPH_INSTANTIATE_WITH_PARAMS: Entry = Entry(205);
    pub const CU_GRAPH_INSTANTIATE_WITH_PARAMS_PTSZ: Entry = Entry(206);
    pub const CU_GRAPH_INSTANTIATE_V2: Entry = Entry(207);
    pub const CU_GRAPH_KERNEL_NODE_COPY_ATTRIBUTES: Entry = Entry(208);
    pub const CU_GRAPH_KERNEL_NODE_GET_ATTRIBUTE: Entry = Entry(209);
    pub const CU_GRAPH_KERNEL_NODE_GET_PARAMS: Entry = Entry(210);
    pub const CU_GRAPH_KERNEL_NODE_GET_PARAMS_V2: Entry = Entry(211);
    pub const CU_GRAPH_KERNEL_NODE_SET_ATTRIBUTE: Entry = Entry(212);
    pub const CU_GRAPH_KERNEL_NODE_SET_PARAMS: Entry = Entry(213);
    pub const CU_GRAPH_KERNEL_NODE_SET_PARAMS_V2: Entry = Entry(214);
    pub const CU_GRAPH_LAUNCH: Entry = Entry(215);
    pub const CU_GRAPH_LAUNCH_PTSZ: Entry = Entry(216);
    pub const CU_GRAPH_MEM_ALLOC_NODE_GET_PARAMS: Entry = Entry(217);
    pub const CU_GRAPH_MEM_FREE_NODE_GET_PARAMS: Entry = Entry(218);
    pub const CU_GRAPH_MEMCPY_NODE_GET_PARAMS: Entry = Entry(219);
    pub const CU_GRAPH_MEMCPY_NODE_SET_PARAMS: Entry = Entry(220);
    pub const CU_GRAPH_MEMSET_NODE_GET_PARAMS: Entry = Entry(221);
    pub const CU_GRAPH_MEMSET_NODE_SET_PARAMS: Entry = Entry(222);
    pub const CU_GRAPH_NODE_FIND_IN_CLONE: Entry = Entry(223);
    pub const CU_GRAPH_NODE_GET_CONTAINING_GRAPH: Entry = Entry(224);
    pub const CU_GRAPH_NODE_GET_DEPENDENCIES: Entry = Entry(225);
    pub const CU_GRAPH_NODE_GET_DEPENDENCIES_V2: Entry = Entry(226);
    pub const CU_GRAPH_NODE_GET_DEPENDENT_NODES: Entry = Entry(227);
    pub const CU_GRAPH_NODE_GET_DEPENDENT_NODES_V2: Entry = Entry(228);
    pub const CU_GRAPH_NODE_GET_ENABLED: Entry = Entry(229);
    pub const CU_GRAPH_NODE_GET_LOCAL_ID: Entry = Entry(230);
    pub const CU_GRAPH_NODE_GET_PARAMS: Entry = Entry(231);
    pub const CU_GRAPH_NODE_GET_TOOLS_ID: Entry = Entry(232);
    pub const CU_GRAPH_NODE_GET_TYPE: Entry = Entry(233);
    pub const CU_GRAPH_NODE_SET_ENABLED: Entry = Entry(234);
    pub const CU_GRAPH_NODE_SET_PARAMS: Entry = Entry(235);
    pub const CU_GRAPH_NODE_SET_PARAMS_V2: Entry = Entry(236);
    pub const CU_GRAPH_RELEASE_USER_OBJECT: Entry = Entry(237);
    pub const CU_GRAPH_REMOVE_DEPENDENCIES: Entry = Entry(238);
    pub const CU_GRAPH_REMOVE_DEPENDENCIES_V2: Entry = Entry(239);
    pub const CU_GRAPH_RETAIN_USER_OBJECT: Entry = Entry(240);
    pub const CU_GRAPH_UPLOAD: Entry = Entry(241);
    pub const CU_GRAPH_UPLOAD_PTSZ: Entry = Entry(242);
    pub const CU_GRAPHICS_MAP_RESOURCES: Entry = Entry(243);
    pub const CU_GRAPHICS_MAP_RESOURCES_PTSZ: Entry = Entry(244);
    pub const CU_GRAPHICS_RESOURCE_GET_MAPPED_MIPMAPPED_ARRAY: Entry = Entry(245);
    pub const CU_GRAPHICS_RESOURCE_GET_MAPPED_POINTER: Entry = Entry(246);
    pub const CU_GRAPHICS_RESOURCE_GET_MAPPED_POINTER_V2: Entry = Entry(247);
    pub const CU_GRAPHICS_RESOURCE_SET_MAP_FLAGS: Entry = Entry(248);
    pub const CU_GRAPHICS_RESOURCE_SET_MAP_FLAGS_V2: Entry = Entry(249);
    pub const CU_GRAPHICS_SUB_RESOURCE_GET_MAPPED_ARRAY: Entry = Entry(250);
    pub const CU_GRAPHICS_UNMAP_RESOURCES: Entry = Entry(251);
    pub const CU_GRAPHICS_UNMAP_RESOURCES_PTSZ: Entry = Entry(252);
    pub const CU_GRAPHICS_UNREGISTER_RESOURCE: Entry = Entry(253);
    pub const CU_GREEN_CTX_CREATE: Entry = Entry(254);
    pub const CU_GREEN_CTX_DESTROY: Entry = Entry(255);
    pub const CU_GREEN_CTX_GET_DEV_RESOURCE: Entry = Entry(256);
    pub const CU_GREEN_CTX_GET_ID: Entry = Entry(257);
    pub const CU_GREEN_CTX_RECORD_EVENT: Entry = Entry(258);
    pub const CU_GREEN_CTX_STREAM_CREATE: Entry = Entry(259);
    pub const CU_GREEN_CTX_WAIT_EVENT: Entry = Entry(260);
    pub const CU_IMPORT_EXTERNAL_MEMORY: Entry = Entry(261);
    pub const CU_IMPORT_EXTERNAL_SEMAPHORE: Entry = Entry(262);
    pub const CU_INIT: Entry = Entry(263);
    pub const CU_IPC_CLOSE_MEM_HANDLE: Entry = Entry(264);
    pub const CU_IPC_GET_EVENT_HANDLE: Entry = Entry(265);
    pub const CU_IPC_GET_MEM_HANDLE: Entry = Entry(266);
    pub const CU_IPC_OPEN_EVENT_HANDLE: Entry = Entry(267);
    pub const CU_IPC_OPEN_MEM_HANDLE: Entry = Entry(268);
    pub const CU_IPC_OPEN_MEM_HANDLE_V2: Entry = Entry(269);
    pub const CU_KERNEL_GET_ATTRIBUTE: Entry = Entry(270);
    pub const CU_KERNEL_GET_FUNCTION: Entry = Entry(271);
    pub const CU_KERNEL_GET_LIBRARY: Entry = Entry(272);
    pub const CU_KERNEL_GET_NAME: Entry = Entry(273);
    pub const CU_KERNEL_GET_PARAM_COUNT: Entry = Entry(274);
    pub const CU_KERNEL_GET_PARAM_INFO: Entry = Entry(275);
    pub const CU_KERNEL_SET_ATTRIBUTE: Entry = Entry(276);
    pub const CU_KERNEL_SET_CACHE_CONFIG: Entry = Entry(277);
    pub const CU_LAUNCH: Entry = Entry(278);
    pub const CU_LAUNCH_COOPERATIVE_KERNEL: Entry = Entry(279);
    pub const CU_LAUNCH_COOPERATIVE_KERNEL_MULTI_DEVICE: Entry = Entry(280);
    pub const CU_LAUNCH_COOPERATIVE_KERNEL_PTSZ: Entry = Entry(281);
    pub const CU_LAUNCH_GRID: Entry = Entry(282);
    pub const CU_LAUNCH_GRID_ASYNC: Entry = Entry(283);
    pub const CU_LAUNCH_HOST_FUNC: Entry = Entry(284);
    pub const CU_LAUNCH_HOST_FUNC_PTSZ: Entry = Entry(285);
    pub const CU_LAUNCH_HOST_FUNC_V2: Entry = Entry(286);
    pub const CU_LAUNCH_HOST_FUNC_V2_PTSZ: Entry = Entry(287);
    pub const CU_LAUNCH_KERNEL: Entry = Entry(288);
    pub const CU_LAUNCH_KERNEL_EX: Entry = Entry(289);
    pub const CU_LAUNCH_KERNEL_EX_PTSZ: Entry = Entry(290);
    pub const CU_LAUNCH_KERNEL_PTSZ: Entry = Entry(291);
    pub const CU_LIBRARY_ENUMERATE_KERNELS: Entry = Entry(292);
    pub const CU_LIBRARY_GET_GLOBAL: Entry = Entry(293);
    pub const CU_LIBRARY_GET_KERNEL: Entry = Entry(294);
    pub const CU_LIBRARY_GET_KERNEL_COUNT: Entry = Entry(295);
    pub const CU_LIBRARY_GET_MANAGED: Entry = Entry(296);
    pub const CU_LIBRARY_GET_MODULE: Entry = Entry(297);
    pub const CU_LIBRARY_GET_UNIFIED_FUNCTION: Entry = Entry(298);
    pub const CU_LIBRARY_LOAD_DATA: Entry = Entry(299);
    pub const CU_LIBRARY_LOAD_FROM_FILE: Entry = Entry(300);
    pub const CU_LIBRARY_UNLOAD: Entry = Entry(301);
    pub const CU_LINK_ADD_DATA: Entry = Entry(302);
    pub const CU_LINK_ADD_DATA_V2: Entry = Entry(303);
    pub const CU_LINK_ADD_FILE: Entry = Entry(304);
    pub const CU_LINK_ADD_FILE_V2: Entry = Entry(305);
    pub const CU_LINK_COMPLETE: Entry = Entry(306);
    pub const CU_LINK_CREATE: Entry = Entry(307);
    pub const CU_LINK_CREATE_V2: Entry = Entry(308);
    pub const CU_LINK_DESTROY: Entry = Entry(309);
    pub const CU_LOGICAL_ENDPOINT_ADD_DEVICE: Entry = Entry(310);
    pub const CU_LOGICAL_ENDPOINT_BIND_ADDR: Entry = Entry(311);
    pub const CU_LOGICAL_ENDPOINT_BIND_MEM: Entry = Entry(312);
    pub const CU_LOGICAL_ENDPOINT_CREATE: Entry = Entry(313);
    pub const CU_LOGICAL_ENDPOINT_DESTROY: Entry = Entry(314);
    pub const CU_LOGICAL_ENDPOINT_EXPORT: Entry = Entry(315);
    pub const CU_LOGICAL_ENDPOINT_GET_LIMITS: Entry = Entry(316);
    pub const CU_LOGICAL_ENDPOINT_ID_RELEASE: Entry = Entry(317);
    pub const CU_LOGICAL_ENDPOINT_ID_RESERVE: Entry = Entry(318);
    pub const CU_LOGICAL_ENDPOINT_IMPORT: Entry = Entry(319);
    pub const CU_LOGICAL_ENDPOINT_QUERY: Entry = Entry(320);
    pub const CU_LOGICAL_ENDPOINT_UNBIND: Entry = Entry(321);
    pub const CU_LOGS_CURRENT: Entry = Entry(322);
    pub const CU_LOGS_DUMP_TO_FILE: Entry = Entry(323);
    pub const CU_LOGS_DUMP_TO_MEMORY: Entry = Entry(324);
    pub const CU_LOGS_REGISTER_CALLBACK: Entry = Entry(325);
    pub const CU_LOGS_UNREGISTER_CALLBACK: Entry = Entry(326);
    pub const CU_MEM_ADDRESS_FREE: Entry = Entry(327);
    pub const CU_MEM_ADDRESS_RESERVE: Entry = Entry(328);
    pub const CU_MEM_ADVISE: Entry = Entry(329);
    pub const CU_MEM_ADVISE_V2: Entry = Entry(330);
    pub const CU_MEM_ALLOC: Entry = Entry(331);
    pub const CU_MEM_ALLOC_ASYNC: Entry = Entry(332);
    pub const CU_MEM_ALLOC_ASYNC_PTSZ: Entry = Entry(333);
    pub const CU_MEM_ALLOC_FROM_POOL_ASYNC: Entry = Entry(334);
    pub const CU_MEM_ALLOC_FROM_POOL_ASYNC_PTSZ: Entry = Entry(335);
    pub const CU_MEM_ALLOC_HOST: Entry = Entry(336);
    pub const CU_MEM_ALLOC_HOST_V2: Entry = Entry(337);
    pub const CU_MEM_ALLOC_MANAGED: Entry = Entry(338);
    pub const CU_MEM_ALLOC_PITCH: Entry = Entry(339);
    pub const CU_MEM_ALLOC_PITCH_V2: Entry = Entry(340);
    pub const CU_MEM_ALLOC_V2: Entry = Entry(341);
    pub const CU_MEM_BATCH_DECOMPRESS_ASYNC: Entry = Entry(342);
    pub const CU_MEM_BATCH_DECOMPRESS_ASYNC_PTSZ: Entry = Entry(343);
    pub const CU_MEM_CREATE: Entry = Entry(344);
    pub const CU_MEM_DISCARD_AND_PREFETCH_BATCH_ASYNC: Entry = Entry(345);
    pub const CU_MEM_DISCARD_AND_PREFETCH_BATCH_ASYNC_PTSZ: Entry = Entry(346);
    pub const CU_MEM_DISCARD_BATCH_ASYNC: Entry = Entry(347);
    pub const CU_MEM_DISCARD_BATCH_ASYNC_PTSZ: Entry = Entry(348);
    pub const CU_MEM_EXPORT_TO_SHAREABLE_HANDLE: Entry = Entry(349);
    pub const CU_MEM_FREE: Entry = Entry(350);
    pub const CU_MEM_FREE_ASYNC: Entry = Entry(351);
    pub const CU_MEM_FREE_ASYNC_PTSZ: Entry = Entry(352);
    pub const CU_MEM_FREE_HOST: Entry = Entry(353);
    pub const CU_MEM_FREE_V2: Entry = Entry(354);
    pub const CU_MEM_GET_ACCESS: Entry = Entry(355);
    pub const CU_MEM_GET_ADDRESS_RANGE: Entry = Entry(356);
    pub const CU_MEM_GET_ADDRESS_RANGE_V2: Entry = Entry(357);
    pub const CU_MEM_GET_ALLOCATION_GRANULARITY: Entry = Entry(358);
    pub const CU_MEM_GET_ALLOCATION_PROPERTIES_FROM_HANDLE: Entry = Entry(359);
    pub const CU_MEM_GET_DEFAULT_MEM_POOL: Entry = Entry(360);
    pub const CU_MEM_GET_HANDLE_FOR_ADDRESS_RANGE: Entry = Entry(361);
    pub const CU_MEM_GET_INFO: Entry = Entry(362);
    pub const CU_MEM_GET_INFO_V2: Entry = Entry(363);
    pub const CU_MEM_GET_LOCATION_INFO: Entry = Entry(364);
    pub const CU_MEM_GET_MEM_POOL: Entry = Entry(365);
    pub const CU_MEM_HOST_ALLOC: Entry = Entry(366);
    pub const CU_MEM_HOST_GET_DEVICE_POINTER: Entry = Entry(367);
    pub const CU_MEM_HOST_GET_DEVICE_POINTER_V2: Entry = Entry(368);
    pub const CU_MEM_HOST_GET_FLAGS: Entry = Entry(369);
    pub const CU_MEM_HOST_REGISTER: Entry = Entry(370);
    pub const CU_MEM_HOST_REGISTER_V2: Entry = Entry(371);
    pub const CU_MEM_HOST_UNREGISTER: Entry = Entry(372);
    pub const CU_MEM_IMPORT_FROM_SHAREABLE_HANDLE: Entry = Entry(373);
    pub const CU_MEM_MAP: Entry = Entry(374);
    pub const CU_MEM_MAP_ARRAY_ASYNC: Entry = Entry(375);
    pub const CU_MEM_MAP_ARRAY_ASYNC_PTSZ: Entry = Entry(376);
    pub const CU_MEM_POOL_CREATE: Entry = Entry(377);
    pub const CU_MEM_POOL_DESTROY: Entry = Entry(378);
    pub const CU_MEM_POOL_EXPORT_POINTER: Entry = Entry(379);
    pub const CU_MEM_POOL_EXPORT_TO_SHAREABLE_HANDLE: Entry = Entry(380);
    pub const CU_MEM_POOL_GET_ACCESS: Entry = Entry(381);
    pub const CU_MEM_POOL_GET_ATTRIBUTE: Entry = Entry(382);
    pub const CU_MEM_POOL_IMPORT_FROM_SHAREABLE_HANDLE: Entry = Entry(383);
    pub const CU_MEM_POOL_IMPORT_POINTER: Entry = Entry(384);
    pub const CU_MEM_POOL_SET_ACCESS: Entry = Entry(385);
    pub const CU_MEM_POOL_SET_ATTRIBUTE: Entry = Entry(386);
    pub const CU_MEM_POOL_TRIM_TO: Entry = Entry(387);
    pub const CU_MEM_PREFETCH_ASYNC: Entry = Entry(388);
    pub const CU_MEM_PREFETCH_ASYNC_PTSZ: Entry = Entry(389);
    pub const CU_MEM_PREFETCH_ASYNC_V2: Entry = Entry(390);
    pub const CU_MEM_PREFETCH_ASYNC_V2_PTSZ: Entry = Entry(391);
    pub const CU_MEM_PREFETCH_BATCH_ASYNC: Entry = Entry(392);
    pub const CU_MEM_PREFETCH_BATCH_ASYNC_PTSZ: Entry = Entry(393);
    pub const CU_MEM_RANGE_GET_ATTRIBUTE: Entry = Entry(394);
    pub const CU_MEM_RANGE_GET_ATTRIBUTES: Entry = Entry(395);
    pub const CU_MEM_RELEASE: Entry = Entry(396);
    pub const CU_MEM_RETAIN_ALLOCATION_HANDLE: Entry = Entry(397);
    pub const CU_MEM_SET_ACCESS: Entry = Entry(398);
    pub const CU_MEM_SET_MEM_POOL: Entry = Entry(399);
    pub const CU_MEM_UNMAP: Entry = Entry(400);
    pub const CU_MEMCPY: Entry = Entry(401);
    pub const CU_MEMCPY2_D: Entry = Entry(402);
    pub const CU_MEMCPY2_DASYNC: Entry = Entry(403);
    pub const CU_MEMCPY2_DASYNC_V2: Entry = Entry(404);
    pub const CU_MEMCPY2_DASYNC_V2_PTSZ: Entry = Entry(405);
    pub const CU_MEMCPY2_DUNALIGNED: Entry = Entry(406);
    pub const CU_MEMCPY2_DUNALIGNED_V2: Entry = Entry(407);
    pub const CU_MEMCPY2_DUNALIGNED_V2_PTDS: Entry = Entry(408);
    pub const CU_MEMCPY2_D_V2: Entry = Entry(409);
    pub const CU_MEMCPY2_D_V2_PTDS: Entry = Entry(410);
    pub const CU_MEMCPY3_D: Entry = Entry(411);
    pub const CU_MEMCPY3_DASYNC: Entry = Entry(412);
    pub const CU_MEMCPY3_DASYNC_V2: Entry = Entry(413);
    pub const CU_MEMCPY3_DASYNC_V2_PTSZ: Entry = Entry(414);
    pub const CU_MEMCPY3_DBATCH_ASYNC: Entry = Entry(415);
    pub const CU_MEMCPY3_DBATCH_ASYNC_PTSZ: Entry = Entry(416);
    pub const CU_MEMCPY3_DBATCH_ASYNC_V2: Entry = Entry(417);
    pub const CU_MEMCPY3_DBATCH_ASYNC_V2_PTSZ: Entry = Entry(418);
    pub const CU_MEMCPY3_DPEER: Entry = Entry(419);
    pub const CU_MEMCPY3_DPEER_ASYNC: Entry = Entry(420);
    pub const CU_MEMCPY3_DPEER_ASYNC_PTSZ: Entry = Entry(421);
    pub const CU_MEMCPY3_DPEER_PTDS: Entry = Entry(422);
    pub const CU_MEMCPY3_DWITH_ATTRIBUTES_ASYNC: Entry = Entry(423);
    pub const CU_MEMCPY3_DWITH_ATTRIBUTES_ASYNC_PTSZ: Entry = Entry(424);
    pub const CU_MEMCPY3_D_V2: Entry = Entry(425);
    pub const CU_MEMCPY3_D_V2_PTDS: Entry = Entry(426);
    pub const CU_MEMCPY_ASYNC: Entry = Entry(427);
    pub const CU_MEMCPY_ASYNC_PTSZ: Entry = Entry(428);
    pub const CU_MEMCPY_ATO_A: Entry = Entry(429);
    pub const CU_MEMCPY_ATO_A_V2: Entry = Entry(430);
    pub const CU_MEMCPY_ATO_A_V2_PTDS: Entry = Entry(431);
    pub const CU_MEMCPY_ATO_D: Entry = Entry(432);
    pub const CU_MEMCPY_ATO_D_V2: Entry = Entry(433);
    pub const CU_MEMCPY_ATO_D_V2_PTDS: Entry = Entry(434);
    pub const CU_MEMCPY_ATO_H: Entry = Entry(435);
    pub const CU_MEMCPY_ATO_HASYNC: Entry = Entry(436);
    pub const CU_MEMCPY_ATO_HASYNC_V2: Entry = Entry(437);
    pub const CU_MEMCPY_ATO_HASYNC_V2_PTSZ: Entry = Entry(438);
    pub const CU_MEMCPY_ATO_H_V2: Entry = Entry(439);
    pub const CU_MEMCPY_ATO_H_V2_PTDS: Entry = Entry(440);
    pub const CU_MEMCPY_BATCH_ASYNC: Entry = Entry(441);
    pub const CU_MEMCPY_BATCH_ASYNC_PTSZ: Entry = Entry(442);
    pub const CU_MEMCPY_BATCH_ASYNC_V2: Entry = Entry(443);
    pub const CU_MEMCPY_BATCH_ASYNC_V2_PTSZ: Entry = Entry(444);
    pub const CU_MEMCPY_DTO_A: Entry = Entry(445);
    pub const CU_MEMCPY_DTO_A_V2: Entry = Entry(446);
    pub const CU_MEMCPY_DTO_A_V2_PTDS: Entry = Entry(447);
    pub const CU_MEMCPY_DTO_D: Entry = Entry(448);
    pub const CU_MEMCPY_DTO_DASYNC: Entry = Entry(449);
    pub const CU_MEMCPY_DTO_DASYNC_V2: Entry = Entry(450);
    pub const CU_MEMCPY_DTO_DASYNC_V2_PTSZ: Entry = Entry(451);
    pub const CU_MEMCPY_DTO_D_V2: Entry = Entry(452);
    pub const CU_MEMCPY_DTO_D_V2_PTDS: Entry = Entry(453);
    pub const CU_MEMCPY_DTO_H: Entry = Entry(454);
    pub const CU_MEMCPY_DTO_HASYNC: Entry = Entry(455);
    pub const CU_MEMCPY_DTO_HASYNC_V2: Entry = Entry(456);
    pub const CU_MEMCPY_DTO_HASYNC_V2_PTSZ: Entry = Entry(457);
    pub const CU_MEMCPY_DTO_H_V2: Entry = Entry(458);
    pub const CU_MEMCPY_DTO_H_V2_PTDS: Entry = Entry(459);
    pub const CU_MEMCPY_HTO_A: Entry = Entry(460);
    pub const CU_MEMCPY_HTO_AASYNC: Entry = Entry(461);
    pub const CU_MEMCPY_HTO_AASYNC_V2: Entry = Entry(462);
    pub const CU_MEMCPY_HTO_AASYNC_V2_PTSZ: Entry = Entry(463);
    pub const CU_MEMCPY_HTO_A_V2: Entry = Entry(464);
    pub const CU_MEMCPY_HTO_A_V2_PTDS: Entry = Entry(465);
    pub const CU_MEMCPY_HTO_D: Entry = Entry(466);
    pub const CU_MEMCPY_HTO_DASYNC: Entry = Entry(467);
    pub const CU_MEMCPY_HTO_DASYNC_V2: Entry = Entry(468);
    pub const CU_MEMCPY_HTO_DASYNC_V2_PTSZ: Entry = Entry(469);
    pub const CU_MEMCPY_HTO_D_V2: Entry = Entry(470);
    pub const CU_MEMCPY_HTO_D_V2_PTDS: Entry = Entry(471);
    pub const CU_MEMCPY_PEER: Entry = Entry(472);
    pub const CU_MEMCPY_PEER_ASYNC: Entry = Entry(473);
    pub const CU_MEMCPY_PEER_ASYNC_PTSZ: Entry = Entry(474);
    pub const CU_MEMCPY_PEER_PTDS: Entry = Entry(475);
    pub const CU_MEMCPY_WITH_ATTRIBUTES_ASYNC: Entry = Entry(476);
    pub const CU_MEMCPY_WITH_ATTRIBUTES_ASYNC_PTSZ: Entry = Entry(477);
    pub const CU_MEMCPY_PTDS: Entry = Entry(478);
    pub const CU_MEMSET_D16: Entry = Entry(479);
    pub const CU_MEMSET_D16_ASYNC: Entry = Entry(480);
    pub const CU_MEMSET_D16_ASYNC_PTSZ: Entry = Entry(481);
    pub const CU_MEMSET_D16_V2: Entry = Entry(482);
    pub const CU_MEMSET_D16_V2_PTDS: Entry = Entry(483);
    pub const CU_MEMSET_D2_D16: Entry = Entry(484);
    pub const CU_MEMSET_D2_D16_ASYNC: Entry = Entry(485);
    pub const CU_MEMSET_D2_D16_ASYNC_PTSZ: Entry = Entry(486);
    pub const CU_MEMSET_D2_D16_V2: Entry = Entry(487);
    pub const CU_MEMSET_D2_D16_V2_PTDS: Entry = Entry(488);
    pub const CU_MEMSET_D2_D32: Entry = Entry(489);
    pub const CU_MEMSET_D2_D32_ASYNC: Entry = Entry(490);
    pub const CU_MEMSET_D2_D32_ASYNC_PTSZ: Entry = Entry(491);
    pub const CU_MEMSET_D2_D32_V2: Entry = Entry(492);
    pub const CU_MEMSET_D2_D32_V2_PTDS: Entry = Entry(493);
    pub const CU_MEMSET_D2_D8: Entry = Entry(494);
    pub const CU_MEMSET_D2_D8_ASYNC: Entry = Entry(495);
    pub const CU_MEMSET_D2_D8_ASYNC_PTSZ: Entry = Entry(496);
    pub const CU_MEMSET_D2_D8_V2: Entry = Entry(497);
    pub const CU_MEMSET_D2_D8_V2_PTDS: Entry = Entry(498);
    pub const CU_MEMSET_D32: Entry = Entry(499);
    pub const CU_MEMSET_D32_ASYNC: Entry = Entry(500);
    pub const CU_MEMSET_D32_ASYNC_PTSZ: Entry = Entry(501);
    pub const CU_MEMSET_D32_V2: Entry = Entry(502);
    pub const CU_MEMSET_D32_V2_PTDS: Entry = Entry(503);
    pub const CU_MEMSET_D8: Entry = Entry(504);
    pub const CU_MEMSET_D8_ASYNC: Entry = Entry(505);
    pub const CU_MEMSET_D8_ASYNC_PTSZ: Entry = Entry(506);
    pub const CU_MEMSET_D8_V2: Entry = Entry(507);
    pub const CU_MEMSET_D8_V2_PTDS: Entry = Entry(508);
    pub const CU_MIPMAPPED_ARRAY_CREATE: Entry = Entry(509);
    pub const CU_MIPMAPPED_ARRAY_DESTROY: Entry = Entry(510);
    pub const CU_MIPMAPPED_ARRAY_GET_LEVEL: Entry = Entry(511);
    pub const CU_MIPMAPPED_ARRAY_GET_MEMORY_REQUIREMENTS: Entry = Entry(512);
    pub const CU_MIPMAPPED_ARRAY_GET_SPARSE_PROPERTIES: Entry = Entry(513);
    pub const CU_MODULE_ENUMERATE_FUNCTIONS: Entry = Entry(514);
    pub const CU_MODULE_GET_FUNCTION: Entry = Entry(515);
    pub const CU_MODULE_GET_FUNCTION_COUNT: Entry = Entry(516);
    pub const CU_MODULE_GET_GLOBAL: Entry = Entry(517);
    pub const CU_MODULE_GET_GLOBAL_V2: Entry = Entry(518);
    pub const CU_MODULE_GET_LOADING_MODE: Entry = Entry(519);
    pub const CU_MODULE_GET_SURF_REF: Entry = Entry(520);
    pub const CU_MODULE_GET_TEX_REF: Entry = Entry(521);
    pub const CU_MODULE_LOAD: Entry = Entry(522);
    pub const CU_MODULE_LOAD_DATA: Entry = Entry(523);
    pub const CU_MODULE_LOAD_DATA_EX: Entry = Entry(524);
    pub const CU_MODULE_LOAD_FAT_BINARY: Entry = Entry(525);
    pub const CU_MODULE_UNLOAD: Entry = Entry(526);
    pub const CU_MULTICAST_ADD_DEVICE: Entry = Entry(527);
    pub const CU_MULTICAST_BIND_ADDR: Entry = Entry(528);
    pub const CU_MULTICAST_BIND_ADDR_V2: Entry = Entry(529);
    pub const CU_MULTICAST_BIND_MEM: Entry = Entry(530);
    pub const CU_MULTICAST_BIND_MEM_V2: Entry = Entry(531);
    pub const CU_MULTICAST_CREATE: Entry = Entry(532);
    pub const CU_MULTICAST_GET_GRANULARITY: Entry = Entry(533);
    pub const CU_MULTICAST_UNBIND: Entry = Entry(534);
    pub const CU_OCCUPANCY_AVAILABLE_DYNAMIC_SMEM_PER_BLOCK: Entry = Entry(535);
    pub const CU_OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_MULTIPROCESSOR: Entry = Entry(536);
    pub const CU_OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_MULTIPROCESSOR_WITH_FLAGS: Entry = Entry(537);
    pub const CU_OCCUPANCY_MAX_ACTIVE_CLUSTERS: Entry = Entry(538);
    pub const CU_OCCUPANCY_MAX_POTENTIAL_BLOCK_SIZE: Entry = Entry(539);
    pub const CU_OCCUPANCY_MAX_POTENTIAL_BLOCK_SIZE_WITH_FLAGS: Entry = Entry(540);
    pub const CU_OCCUPANCY_MAX_POTENTIAL_CLUSTER_SIZE: Entry = Entry(541);
    pub const CU_PARAM_SET_SIZE: Entry = Entry(542);
    pub const CU_PARAM_SET_TEX_REF: Entry = Entry(543);
    pub const CU_PARAM_SETF: Entry = Entry(544);
    pub const CU_PARAM_SETI: Entry = Entry(545);
    pub const CU_PARAM_SETV: Entry = Entry(546);
    pub const CU_POINTER_GET_ATTRIBUTE: Entry = Entry(547);
    pub const CU_POINTER_GET_ATTRIBUTES: Entry = Entry(548);
    pub const CU_POINTER_SET_ATTRIBUTE: Entry = Entry(549);
    pub const CU_SIGNAL_EXTERNAL_SEMAPHORES_ASYNC: Entry = Entry(550);
    pub const CU_SIGNAL_EXTERNAL_SEMAPHORES_ASYNC_PTSZ: Entry = Entry(551);
    pub const CU_STREAM_ADD_CALLBACK: Entry = Entry(552);
    pub const CU_STREAM_ADD_CALLBACK_PTSZ: Entry = Entry(553);
    pub const CU_STREAM_ATTACH_MEM_ASYNC: Entry = Entry(554);
    pub const CU_STREAM_ATTACH_MEM_ASYNC_PTSZ: Entry = Entry(555);
    pub const CU_STREAM_BATCH_MEM_OP: Entry = Entry(556);
    pub const CU_STREAM_BATCH_MEM_OP_PTSZ: Entry = Entry(557);
    pub const CU_STREAM_BATCH_MEM_OP_V2: Entry = Entry(558);
    pub const CU_STREAM_BATCH_MEM_OP_V2_PTSZ: Entry = Entry(559);
    pub const CU_STREAM_BEGIN_CAPTURE: Entry = Entry(560);
    pub const CU_STREAM_BEGIN_CAPTURE_TO_CIG: Entry = Entry(561);
    pub const CU_STREAM_BEGIN_CAPTURE_TO_CIG_PTSZ: Entry = Entry(562);
    pub const CU_STREAM_BEGIN_CAPTURE_TO_GRAPH: Entry = Entry(563);
    pub const CU_STREAM_BEGIN_CAPTURE_TO_GRAPH_PTSZ: Entry = Entry(564);
    pub const CU_STREAM_BEGIN_CAPTURE_PTSZ: Entry = Entry(565);
    pub const CU_STREAM_BEGIN_CAPTURE_V2: Entry = Entry(566);
    pub const CU_STREAM_BEGIN_CAPTURE_V2_PTSZ: Entry = Entry(567);
    pub const CU_STREAM_BEGIN_RECAPTURE_TO_GRAPH: Entry = Entry(568);
    pub const CU_STREAM_BEGIN_RECAPTURE_TO_GRAPH_PTSZ: Entry = Entry(569);
    pub const CU_STREAM_COPY_ATTRIBUTES: Entry = Entry(570);
    pub const CU_STREAM_COPY_ATTRIBUTES_PTSZ: Entry = Entry(571);
    pub const CU_STREAM_CREATE: Entry = Entry(572);
    pub const CU_STREAM_CREATE_WITH_PRIORITY: Entry = Entry(573);
    pub const CU_STREAM_DESTROY: Entry = Entry(574);
    pub const CU_STREAM_DESTROY_V2: Entry = Entry(575);
    pub const CU_STREAM_END_CAPTURE: Entry = Entry(576);
    pub const CU_STREAM_END_CAPTURE_TO_CIG: Entry = Entry(577);
    pub const CU_STREAM_END_CAPTURE_TO_CIG_PTSZ: Entry = Entry(578);
    pub const CU_STREAM_END_CAPTURE_PTSZ: Entry = Entry(579);
    pub const CU_STREAM_GET_ATTRIBUTE: Entry = Entry(580);
    pub const CU_STREAM_GET_ATTRIBUTE_PTSZ: Entry = Entry(581);
    pub const CU_STREAM_GET_CAPTURE_INFO: Entry = Entry(582);
    pub const CU_STREAM_GET_CAPTURE_INFO_PTSZ: Entry = Entry(583);
    pub const CU_STREAM_GET_CAPTURE_INFO_V2: Entry = Entry(584);
    pub const CU_STREAM_GET_CAPTURE_INFO_V2_PTSZ: Entry = Entry(585);
    pub const CU_STREAM_GET_CAPTURE_INFO_V3: Entry = Entry(586);
    pub const CU_STREAM_GET_CAPTURE_INFO_V3_PTSZ: Entry = Entry(587);
    pub const CU_STREAM_GET_CTX: Entry = Entry(588);
    pub const CU_STREAM_GET_CTX_PTSZ: Entry = Entry(589);
    pub const CU_STREAM_GET_CTX_V2: Entry = Entry(590);
    pub const CU_STREAM_GET_CTX_V2_PTSZ: Entry = Entry(591);
    pub const CU_STREAM_GET_DEV_RESOURCE: Entry = Entry(592);
    pub const CU_STREAM_GET_DEV_RESOURCE_PTSZ: Entry = Entry(593);
    pub const CU_STREAM_GET_DEVICE: Entry = Entry(594);
    pub const CU_STREAM_GET_DEVICE_PTSZ: Entry = Entry(595);
    pub const CU_STREAM_GET_FLAGS: Entry = Entry(596);
    pub const CU_STREAM_GET_FLAGS_PTSZ: Entry = Entry(597);
    pub const CU_STREAM_GET_GREEN_CTX: Entry = Entry(598);
    pub const CU_STREAM_GET_ID: Entry = Entry(599);
    pub const CU_STREAM_GET_ID_PTSZ: Entry = Entry(600);
    pub const CU_STREAM_GET_PRIORITY: Entry = Entry(601);
    pub const CU_STREAM_GET_PRIORITY_PTSZ: Entry = Entry(602);
    pub const CU_STREAM_IS_CAPTURING: Entry = Entry(603);
    pub const CU_STREAM_IS_CAPTURING_PTSZ: Entry = Entry(604);
    pub const CU_STREAM_QUERY: Entry = Entry(605);
    pub const CU_STREAM_QUERY_PTSZ: Entry = Entry(606);
    pub const CU_STREAM_SET_ATTRIBUTE: Entry = Entry(607);
    pub const CU_STREAM_SET_ATTRIBUTE_PTSZ: Entry = Entry(608);
    pub const CU_STREAM_SYNCHRONIZE: Entry = Entry(609);
    pub const CU_STREAM_SYNCHRONIZE_PTSZ: Entry = Entry(610);
    pub const CU_STREAM_UPDATE_CAPTURE_DEPENDENCIES: Entry = Entry(611);
    pub const CU_STREAM_UPDATE_CAPTURE_DEPENDENCIES_PTSZ: Entry = Entry(612);
    pub const CU_STREAM_UPDATE_CAPTURE_DEPENDENCIES_V2: Entry = Entry(613);
    pub const CU_STREAM_UPDATE_CAPTURE_DEPENDENCIES_V2_PTSZ: Entry = Entry(614);
    pub const CU_STREAM_WAIT_EVENT: Entry = Entry(615);
    pub const CU_STREAM_WAIT_EVENT_PTSZ: Entry = Entry(616);
    pub const CU_STREAM_WAIT_VALUE32: Entry = Entry(617);
    pub const CU_STREAM_WAIT_VALUE32_PTSZ: Entry = Entry(618);
    pub const CU_STREAM_WAIT_VALUE32_V2: Entry = Entry(619);
    pub const CU_STREAM_WAIT_VALUE32_V2_PTSZ: Entry = Entry(620);
    pub const CU_STREAM_WAIT_VALUE64: Entry = Entry(621);
    pub const CU_STREAM_WAIT_VALUE64_PTSZ: Entry = Entry(622);
    pub const CU_STREAM_WAIT_VALUE64_V2: Entry = Entry(623);
    pub const CU_STREAM_WAIT_VALUE64_V2_PTSZ: Entry = Entry(624);
    pub const CU_STREAM_WRITE_VALUE32: Entry = Entry(625);
    pub const CU_STREAM_WRITE_VALUE32_PTSZ: Entry = Entry(626);
    pub const CU_STREAM_WRITE_VALUE32_V2: Entry = Entry(627);
    pub const CU_STREAM_WRITE_VALUE32_V2_PTSZ: Entry = Entry(628);
    pub const CU_STREAM_WRITE_VALUE64: Entry = Entry(629);
    pub const CU_STREAM_WRITE_VALUE64_PTSZ: Entry = Entry(630);
    pub const CU_STREAM_WRITE_VALUE64_V2: Entry = Entry(631);
    pub const CU_STREAM_WRITE_VALUE64_V2_PTSZ: Entry = Entry(632);
    pub const CU_SURF_OBJECT_CREATE: Entry = Entry(633);
    pub const CU_SURF_OBJECT_DESTROY: Entry = Entry(634);
    pub const CU_SURF_OBJECT_GET_RESOURCE_DESC: Entry = Entry(635);
    pub const CU_SURF_REF_GET_ARRAY: Entry = Entry(636);
    pub const CU_SURF_REF_SET_ARRAY: Entry = Entry(637);
    pub const CU_TENSOR_MAP_ENCODE_IM2COL: Entry = Entry(638);
    pub const CU_TENSOR_MAP_ENCODE_IM2COL_WIDE: Entry = Entry(639);
    pub const CU_TENSOR_MAP_ENCODE_TILED: Entry = Entry(640);
    pub const CU_TENSOR_MAP_REPLACE_ADDRESS: Entry = Entry(641);
    pub const CU_TENSOR_MAP_SET_ALLOCATION_CLASS: Entry = Entry(642);
    pub const CU_TEX_OBJECT_CREATE: Entry = Entry(643);
    pub const CU_TEX_OBJECT_DESTROY: Entry = Entry(644);
    pub const CU_TEX_OBJECT_GET_RESOURCE_DESC: Entry = Entry(645);
    pub const CU_TEX_OBJECT_GET_RESOURCE_VIEW_DESC: Entry = Entry(646);
    pub const CU_TEX_OBJECT_GET_TEXTURE_DESC: Entry = Entry(647);
    pub const CU_TEX_REF_CREATE: Entry = Entry(648);
    pub const CU_TEX_REF_DESTROY: Entry = Entry(649);
    pub const CU_TEX_REF_GET_ADDRESS: Entry = Entry(650);
    pub const CU_TEX_REF_GET_ADDRESS_MODE: Entry = Entry(651);
    pub const CU_TEX_REF_GET_ADDRESS_V2: Entry = Entry(652);
    pub const CU_TEX_REF_GET_ARRAY: Entry = Entry(653);
    pub const CU_TEX_REF_GET_BORDER_COLOR: Entry = Entry(654);
    pub const CU_TEX_REF_GET_FILTER_MODE: Entry = Entry(655);
    pub const CU_TEX_REF_GET_FLAGS: Entry = Entry(656);
    pub const CU_TEX_REF_GET_FORMAT: Entry = Entry(657);
    pub const CU_TEX_REF_GET_MAX_ANISOTROPY: Entry = Entry(658);
    pub const CU_TEX_REF_GET_MIPMAP_FILTER_MODE: Entry = Entry(659);
    pub const CU_TEX_REF_GET_MIPMAP_LEVEL_BIAS: Entry = Entry(660);
    pub const CU_TEX_REF_GET_MIPMAP_LEVEL_CLAMP: Entry = Entry(661);
    pub const CU_TEX_REF_GET_MIPMAPPED_ARRAY: Entry = Entry(662);
    pub const CU_TEX_REF_SET_ADDRESS: Entry = Entry(663);
    pub const CU_TEX_REF_SET_ADDRESS2_D: Entry = Entry(664);
    pub const CU_TEX_REF_SET_ADDRESS2_D_V2: Entry = Entry(665);
    pub const CU_TEX_REF_SET_ADDRESS2_D_V3: Entry = Entry(666);
    pub const CU_TEX_REF_SET_ADDRESS_MODE: Entry = Entry(667);
    pub const CU_TEX_REF_SET_ADDRESS_V2: Entry = Entry(668);
    pub const CU_TEX_REF_SET_ARRAY: Entry = Entry(669);
    pub const CU_TEX_REF_SET_BORDER_COLOR: Entry = Entry(670);
    pub const CU_TEX_REF_SET_FILTER_MODE: Entry = Entry(671);
    pub const CU_TEX_REF_SET_FLAGS: Entry = Entry(672);
    pub const CU_TEX_REF_SET_FORMAT: Entry = Entry(673);
    pub const CU_TEX_REF_SET_MAX_ANISOTROPY: Entry = Entry(674);
    pub const CU_TEX_REF_SET_MIPMAP_FILTER_MODE: Entry = Entry(675);
    pub const CU_TEX_REF_SET_MIPMAP_LEVEL_BIAS: Entry = Entry(676);
    pub const CU_TEX_REF_SET_MIPMAP_LEVEL_CLAMP: Entry = Entry(677);
    pub const CU_TEX_REF_SET_MIPMAPPED_ARRAY: Entry = Entry(678);
    pub const CU_THREAD_EXCHANGE_STREAM_CAPTURE_MODE: Entry = Entry(679);
    pub const CU_USER_OBJECT_CREATE: Entry = Entry(680);
    pub const CU_USER_OBJECT_RELEASE: Entry = Entry(681);
    pub const CU_USER_OBJECT_RETAIN: Entry = Entry(682);
    pub const CU_WAIT_EXTERNAL_SEMAPHORES_ASYNC: Entry = Entry(683);
    pub const CU_WAIT_EXTERNAL_SEMAPHORES_ASYNC_PTSZ: Entry = Entry(684);
}

/// How many entry points have a number.
pub const COUNT: usize = 685;

/// Their names, sorted.
#[rustfmt::skip]
pub static NAMES: [&std::ffi::CStr; COUNT] = [
    c"cuArray3DCreate",
    c"cuArray3DCreate_v2",
    c"cuArray3DGetDescriptor",
    c"cuArray3DGetDescriptor_v2",
    c"cuArrayCreate",
    c"cuArrayCreate_v2",
    c"cuArrayDestroy",
    c"cuArrayGetDescriptor",
    c"cuArrayGetDescriptor_v2",
    c"cuArrayGetMemoryRequirements",
    c"cuArrayGetPlane",
    c"cuArrayGetSparseProperties",
    c"cuCheckpointOperationComplete",
    c"cuCheckpointProcessCheckpoint",
    c"cuCheckpointProcessGetRestoreThreadId",
    c"cuCheckpointProcessGetState",
    c"cuCheckpointProcessLock",
    c"cuCheckpointProcessRestore",
    c"cuCheckpointProcessUnlock",
    c"cuCoredumpDeregisterCompleteCallback",
    c"cuCoredumpDeregisterStartCallback",
    c"cuCoredumpGetAttribute",
    c"cuCoredumpGetAttributeGlobal",
    c"cuCoredumpRegisterCompleteCallback",
    c"cuCoredumpRegisterStartCallback",
    c"cuCoredumpSetAttribute",
    c"cuCoredumpSetAttributeGlobal",
    c"cuCtxAttach",
    c"cuCtxCreate",
    c"cuCtxCreate_v2",
    c"cuCtxCreate_v3",
    c"cuCtxCreate_v4",
    c"cuCtxDestroy",
    c"cuCtxDestroy_v2",
    c"cuCtxDetach",
    c"cuCtxDisablePeerAccess",
    c"cuCtxEnablePeerAccess",
    c"cuCtxFromGreenCtx",
    c"cuCtxGetApiVersion",
    c"cuCtxGetCacheConfig",
    c"cuCtxGetCurrent",
    c"cuCtxGetDevResource",
    c"cuCtxGetDevice",
    c"cuCtxGetDevice_v2",
    c"cuCtxGetExecAffinity",
    c"cuCtxGetFlags",
    c"cuCtxGetId",
    c"cuCtxGetLimit",
    c"cuCtxGetSharedMemConfig",
    c"cuCtxGetStreamPriorityRange",
    c"cuCtxPopCurrent",
    c"cuCtxPopCurrent_v2",
    c"cuCtxPushCurrent",
    c"cuCtxPushCurrent_v2",
    c"cuCtxRecordEvent",
    c"cuCtxResetPersistingL2Cache",
    c"cuCtxSetCacheConfig",
    c"cuCtxSetCurrent",
    c"cuCtxSetFlags",
    c"cuCtxSetLimit",
    c"cuCtxSetSharedMemConfig",
    c"cuCtxSynchronize",
    c"cuCtxSynchronize_v2",
    c"cuCtxWaitEvent",
    c"cuDestroyExternalMemory",
    c"cuDestroyExternalSemaphore",
    c"cuDevResourceGenerateDesc",
    c"cuDevSmResourceSplit",
    c"cuDevSmResourceSplitByCount",
    c"cuDeviceCanAccessPeer",
    c"cuDeviceComputeCapability",
    c"cuDeviceGet",
    c"cuDeviceGetAttribute",
    c"cuDeviceGetByPCIBusId",
    c"cuDeviceGetCliqueCount",
    c"cuDeviceGetCliqueInfo",
    c"cuDeviceGetCount",
    c"cuDeviceGetDefaultMemPool",
    c"cuDeviceGetDevResource",
    c"cuDeviceGetExecAffinitySupport",
    c"cuDeviceGetFabricClusterUuid",
    c"cuDeviceGetGraphMemAttribute",
    c"cuDeviceGetHostAtomicCapabilities",
    c"cuDeviceGetLuid",
    c"cuDeviceGetMemPool",
    c"cuDeviceGetName",
    c"cuDeviceGetNvSciSyncAttributes",
    c"cuDeviceGetP2PAtomicCapabilities",
    c"cuDeviceGetP2PAttribute",
    c"cuDeviceGetPCIBusId",
    c"cuDeviceGetProperties",
    c"cuDeviceGetTexture1DLinearMaxWidth",
    c"cuDeviceGetUuid",
    c"cuDeviceGetUuid_v2",
    c"cuDeviceGraphMemTrim",
    c"cuDevicePrimaryCtxGetState",
    c"cuDevicePrimaryCtxRelease",
    c"cuDevicePrimaryCtxRelease_v2",
    c"cuDevicePrimaryCtxReset",
    c"cuDevicePrimaryCtxReset_v2",
    c"cuDevicePrimaryCtxRetain",
    c"cuDevicePrimaryCtxSetFlags",
    c"cuDevicePrimaryCtxSetFlags_v2",
    c"cuDeviceRegisterAsyncNotification",
    c"cuDeviceSetGraphMemAttribute",
    c"cuDeviceSetMemPool",
    c"cuDeviceTotalMem",
    c"cuDeviceTotalMem_v2",
    c"cuDeviceUnregisterAsyncNotification",
    c"cuDriverGetVersion",
    c"cuEventCreate",
    c"cuEventDestroy",
    c"cuEventDestroy_v2",
    c"cuEventElapsedTime",
    c"cuEventElapsedTime_v2",
    c"cuEventQuery",
    c"cuEventRecord",
    c"cuEventRecordWithFlags",
    c"cuEventRecordWithFlags_ptsz",
    c"cuEventRecord_ptsz",
    c"cuEventSynchronize",
    c"cuExternalMemoryGetMappedBuffer",
    c"cuExternalMemoryGetMappedMipmappedArray",
    c"cuFabricCpyBatchAsync",
    c"cuFabricCpyBatchAsync_ptsz",
    c"cuFlushGPUDirectRDMAWrites",
    c"cuFuncGetAttribute",
    c"cuFuncGetModule",
    c"cuFuncGetName",
    c"cuFuncGetParamCount",
    c"cuFuncGetParamInfo",
    c"cuFuncIsLoaded",
    c"cuFuncLoad",
    c"cuFuncSetAttribute",
    c"cuFuncSetBlockShape",
    c"cuFuncSetCacheConfig",
    c"cuFuncSetSharedMemConfig",
    c"cuFuncSetSharedSize",
    c"cuGetErrorName",
    c"cuGetErrorString",
    c"cuGetExportTable",
    c"cuGetProcAddress",
    c"cuGetProcAddress_v2",
    c"cuGraphAddBatchMemOpNode",
    c"cuGraphAddChildGraphNode",
    c"cuGraphAddDependencies",
    c"cuGraphAddDependencies_v2",
    c"cuGraphAddEmptyNode",
    c"cuGraphAddEventRecordNode",
    c"cuGraphAddEventWaitNode",
    c"cuGraphAddExternalSemaphoresSignalNode",
    c"cuGraphAddExternalSemaphoresWaitNode",
    c"cuGraphAddHostNode",
    c"cuGraphAddKernelNode",
    c"cuGraphAddKernelNode_v2",
    c"cuGraphAddMemAllocNode",
    c"cuGraphAddMemFreeNode",
    c"cuGraphAddMemcpyNode",
    c"cuGraphAddMemsetNode",
    c"cuGraphAddNode",
    c"cuGraphAddNode_v2",
    c"cuGraphAddNode_v3",
    c"cuGraphBatchMemOpNodeGetParams",
    c"cuGraphBatchMemOpNodeSetParams",
    c"cuGraphChildGraphNodeGetGraph",
    c"cuGraphClone",
    c"cuGraphConditionalHandleCreate",
    c"cuGraphCreate",
    c"cuGraphDebugDotPrint",
    c"cuGraphDestroy",
    c"cuGraphDestroyNode",
    c"cuGraphEventRecordNodeGetEvent",
    c"cuGraphEventRecordNodeSetEvent",
    c"cuGraphEventWaitNodeGetEvent",
    c"cuGraphEventWaitNodeSetEvent",
    c"cuGraphExecBatchMemOpNodeSetParams",
    c"cuGraphExecChildGraphNodeSetParams",
    c"cuGraphExecDestroy",
    c"cuGraphExecEventRecordNodeSetEvent",
    c"cuGraphExecEventWaitNodeSetEvent",
    c"cuGraphExecExternalSemaphoresSignalNodeSetParams",
    c"cuGraphExecExternalSemaphoresWaitNodeSetParams",
    c"cuGraphExecGetFlags",
    c"cuGraphExecGetId",
    c"cuGraphExecHostNodeSetParams",
    c"cuGraphExecKernelNodeSetParams",
    c"cuGraphExecKernelNodeSetParams_v2",
    c"cuGraphExecMemcpyNodeSetParams",
    c"cuGraphExecMemsetNodeSetParams",
    c"cuGraphExecNodeSetParams",
    c"cuGraphExecUpdate",
    c"cuGraphExecUpdate_v2",
    c"cuGraphExternalSemaphoresSignalNodeGetParams",
    c"cuGraphExternalSemaphoresSignalNodeSetParams",
    c"cuGraphExternalSemaphoresWaitNodeGetParams",
    c"cuGraphExternalSemaphoresWaitNodeSetParams",
    c"cuGraphGetEdges",
    c"cuGraphGetEdges_v2",
    c"cuGraphGetId",
    c"cuGraphGetNodes",
    c"cuGraphGetRootNodes",
    c"cuGraphHostNodeGetParams",
    c"cuGraphHostNodeSetParams",
    c"cuGraphInstantiate",
    c"cuGraphInstantiateWithFlags",
    c"cuGraphInstantiateWithParams",
    c"cuGraphInstantiateWithParams_ptsz",
    c"cuGraphInstantiate_v2",
    c"cuGraphKernelNodeCopyAttributes",
    c"cuGraphKernelNodeGetAttribute",
    c"cuGraphKernelNodeGetParams",
    c"cuGraphKernelNodeGetParams_v2",
    c"cuGraphKernelNodeSetAttribute",
    c"cuGraphKernelNodeSetParams",
    c"cuGraphKernelNodeSetParams_v2",
    c"cuGraphLaunch",
    c"cuGraphLaunch_ptsz",
    c"cuGraphMemAllocNodeGetParams",
    c"cuGraphMemFreeNodeGetParams",
    c"cuGraphMemcpyNodeGetParams",
    c"cuGraphMemcpyNodeSetParams",
    c"cuGraphMemsetNodeGetParams",
    c"cuGraphMemsetNodeSetParams",
    c"cuGraphNodeFindInClone",
    c"cuGraphNodeGetContainingGraph",
    c"cuGraphNodeGetDependencies",
    c"cuGraphNodeGetDependencies_v2",
    c"cuGraphNodeGetDependentNodes",
    c"cuGraphNodeGetDependentNodes_v2",
    c"cuGraphNodeGetEnabled",
    c"cuGraphNodeGetLocalId",
    c"cuGraphNodeGetParams",
    c"cuGraphNodeGetToolsId",
    c"cuGraphNodeGetType",
    c"cuGraphNodeSetEnabled",
    c"cuGraphNodeSetParams",
    c"cuGraphNodeSetParams_v2",
    c"cuGraphReleaseUserObject",
    c"cuGraphRemoveDependencies",
    c"cuGraphRemoveDependencies_v2",
    c"cuGraphRetainUserObject",
    c"cuGraphUpload",
    c"cuGraphUpload_ptsz",
    c"cuGraphicsMapResources",
    c"cuGraphicsMapResources_ptsz",
    c"cuGraphicsResourceGetMappedMipmappedArray",
    c"cuGraphicsResourceGetMappedPointer",
    c"cuGraphicsResourceGetMappedPointer_v2",
    c"cuGraphicsResourceSetMapFlags",
    c"cuGraphicsResourceSetMapFlags_v2",
    c"cuGraphicsSubResourceGetMappedArray",
    c"cuGraphicsUnmapResources",
    c"cuGraphicsUnmapResources_ptsz",
    c"cuGraphicsUnregisterResource",
    c"cuGreenCtxCreate",
    c"cuGreenCtxDestroy",
    c"cuGreenCtxGetDevResource",
    c"cuGreenCtxGetId",
    c"cuGreenCtxRecordEvent",
    c"cuGreenCtxStreamCreate",
    c"cuGreenCtxWaitEvent",
    c"cuImportExternalMemory",
    c"cuImportExternalSemaphore",
    c"cuInit",
    c"cuIpcCloseMemHandle",
    c"cuIpcGetEventHandle",
    c"cuIpcGetMemHandle",
    c"cuIpcOpenEventHandle",
    c"cuIpcOpenMemHandle",
    c"cuIpcOpenMemHandle_v2",
    c"cuKernelGetAttribute",
    c"cuKernelGetFunction",
    c"cuKernelGetLibrary",
    c"cuKernelGetName",
    c"cuKernelGetParamCount",
    c"cuKernelGetParamInfo",
    c"cuKernelSetAttribute",
    c"cuKernelSetCacheConfig",
    c"cuLaunch",
    c"cuLaunchCooperativeKernel",
    c"cuLaunchCooperativeKernelMultiDevice",
    c"cuLaunchCooperativeKernel_ptsz",
    c"cuLaunchGrid",
    c"cuLaunchGridAsync",
    c"cuLaunchHostFunc",
    c"cuLaunchHostFunc_ptsz",
    c"cuLaunchHostFunc_v2",
    c"cuLaunchHostFunc_v2_ptsz",
    c"cuLaunchKernel",
    c"cuLaunchKernelEx",
    c"cuLaunchKernelEx_ptsz",
    c"cuLaunchKernel_ptsz",
    c"cuLibraryEnumerateKernels",
    c"cuLibraryGetGlobal",
    c"cuLibraryGetKernel",
    c"cuLibraryGetKernelCount",
    c"cuLibraryGetManaged",
    c"cuLibraryGetModule",
    c"cuLibraryGetUnifiedFunction",
    c"cuLibraryLoadData",
    c"cuLibraryLoadFromFile",
    c"cuLibraryUnload",
    c"cuLinkAddData",
    c"cuLinkAddData_v2",
    c"cuLinkAddFile",
    c"cuLinkAddFile_v2",
    c"cuLinkComplete",
    c"cuLinkCreate",
    c"cuLinkCreate_v2",
    c"cuLinkDestroy",
    c"cuLogicalEndpointAddDevice",
    c"cuLogicalEndpointBindAddr",
    c"cuLogicalEndpointBindMem",
    c"cuLogicalEndpointCreate",
    c"cuLogicalEndpointDestroy",
    c"cuLogicalEndpointExport",
    c"cuLogicalEndpointGetLimits",
    c"cuLogicalEndpointIdRelease",
    c"cuLogicalEndpointIdReserve",
    c"cuLogicalEndpointImport",
    c"cuLogicalEndpointQuery",
    c"cuLogicalEndpointUnbind",
    c"cuLogsCurrent",
    c"cuLogsDumpToFile",
    c"cuLogsDumpToMemory",
    c"cuLogsRegisterCallback",
    c"cuLogsUnregisterCallback",
    c"cuMemAddressFree",
    c"cuMemAddressReserve",
    c"cuMemAdvise",
    c"cuMemAdvise_v2",
    c"cuMemAlloc",
    c"cuMemAllocAsync",
    c"cuMemAllocAsync_ptsz",
    c"cuMemAllocFromPoolAsync",
    c"cuMemAllocFromPoolAsync_ptsz",
    c"cuMemAllocHost",
    c"cuMemAllocHost_v2",
    c"cuMemAllocManaged",
    c"cuMemAllocPitch",
    c"cuMemAllocPitch_v2",
    c"cuMemAlloc_v2",
    c"cuMemBatchDecompressAsync",
    c"cuMemBatchDecompressAsync_ptsz",
    c"cuMemCreate",
    c"cuMemDiscardAndPrefetchBatchAsync",
    c"cuMemDiscardAndPrefetchBatchAsync_ptsz",
    c"cuMemDiscardBatchAsync",
    c"cuMemDiscardBatchAsync_ptsz",
    c"cuMemExportToShareableHandle",
    c"cuMemFree",
    c"cuMemFreeAsync",
    c"cuMemFreeAsync_ptsz",
    c"cuMemFreeHost",
    c"cuMemFree_v2",
    c"cuMemGetAccess",
    c"cuMemGetAddressRange",
    c"cuMemGetAddressRange_v2",
    c"cuMemGetAllocationGranularity",
    c"cuMemGetAllocationPropertiesFromHandle",
    c"cuMemGetDefaultMemPool",
    c"cuMemGetHandleForAddressRange",
    c"cuMemGetInfo",
    c"cuMemGetInfo_v2",
    c"cuMemGetLocationInfo",
    c"cuMemGetMemPool",
    c"cuMemHostAlloc",
    c"cuMemHostGetDevicePointer",
    c"cuMemHostGetDevicePointer_v2",
    c"cuMemHostGetFlags",
    c"cuMemHostRegister",
    c"cuMemHostRegister_v2",
    c"cuMemHostUnregister",
    c"cuMemImportFromShareableHandle",
    c"cuMemMap",
    c"cuMemMapArrayAsync",
    c"cuMemMapArrayAsync_ptsz",
    c"cuMemPoolCreate",
    c"cuMemPoolDestroy",
    c"cuMemPoolExportPointer",
    c"cuMemPoolExportToShareableHandle",
    c"cuMemPoolGetAccess",
    c"cuMemPoolGetAttribute",
    c"cuMemPoolImportFromShareableHandle",
    c"cuMemPoolImportPointer",
    c"cuMemPoolSetAccess",
    c"cuMemPoolSetAttribute",
    c"cuMemPoolTrimTo",
    c"cuMemPrefetchAsync",
    c"cuMemPrefetchAsync_ptsz",
    c"cuMemPrefetchAsync_v2",
    c"cuMemPrefetchAsync_v2_ptsz",
    c"cuMemPrefetchBatchAsync",
    c"cuMemPrefetchBatchAsync_ptsz",
    c"cuMemRangeGetAttribute",
    c"cuMemRangeGetAttributes",
    c"cuMemRelease",
    c"cuMemRetainAllocationHandle",
    c"cuMemSetAccess",
    c"cuMemSetMemPool",
    c"cuMemUnmap",
    c"cuMemcpy",
    c"cuMemcpy2D",
    c"cuMemcpy2DAsync",
    c"cuMemcpy2DAsync_v2",
    c"cuMemcpy2DAsync_v2_ptsz",
    c"cuMemcpy2DUnaligned",
    c"cuMemcpy2DUnaligned_v2",
    c"cuMemcpy2DUnaligned_v2_ptds",
    c"cuMemcpy2D_v2",
    c"cuMemcpy2D_v2_ptds",
    c"cuMemcpy3D",
    c"cuMemcpy3DAsync",
    c"cuMemcpy3DAsync_v2",
    c"cuMemcpy3DAsync_v2_ptsz",
    c"cuMemcpy3DBatchAsync",
    c"cuMemcpy3DBatchAsync_ptsz",
    c"cuMemcpy3DBatchAsync_v2",
    c"cuMemcpy3DBatchAsync_v2_ptsz",
    c"cuMemcpy3DPeer",
    c"cuMemcpy3DPeerAsync",
    c"cuMemcpy3DPeerAsync_ptsz",
    c"cuMemcpy3DPeer_ptds",
    c"cuMemcpy3DWithAttributesAsync",
    c"cuMemcpy3DWithAttributesAsync_ptsz",
    c"cuMemcpy3D_v2",
    c"cuMemcpy3D_v2_ptds",
    c"cuMemcpyAsync",
    c"cuMemcpyAsync_ptsz",
    c"cuMemcpyAtoA",
    c"cuMemcpyAtoA_v2",
    c"cuMemcpyAtoA_v2_ptds",
    c"cuMemcpyAtoD",
    c"cuMemcpyAtoD_v2",
    c"cuMemcpyAtoD_v2_ptds",
    c"cuMemcpyAtoH",
    c"cuMemcpyAtoHAsync",
    c"cuMemcpyAtoHAsync_v2",
    c"cuMemcpyAtoHAsync_v2_ptsz",
    c"cuMemcpyAtoH_v2",
    c"cuMemcpyAtoH_v2_ptds",
    c"cuMemcpyBatchAsync",
    c"cuMemcpyBatchAsync_ptsz",
    c"cuMemcpyBatchAsync_v2",
    c"cuMemcpyBatchAsync_v2_ptsz",
    c"cuMemcpyDtoA",
    c"cuMemcpyDtoA_v2",
    c"cuMemcpyDtoA_v2_ptds",
    c"cuMemcpyDtoD",
    c"cuMemcpyDtoDAsync",
    c"cuMemcpyDtoDAsync_v2",
    c"cuMemcpyDtoDAsync_v2_ptsz",
    c"cuMemcpyDtoD_v2",
    c"cuMemcpyDtoD_v2_ptds",
    c"cuMemcpyDtoH",
    c"cuMemcpyDtoHAsync",
    c"cuMemcpyDtoHAsync_v2",
    c"cuMemcpyDtoHAsync_v2_ptsz",
    c"cuMemcpyDtoH_v2",
    c"cuMemcpyDtoH_v2_ptds",
    c"cuMemcpyHtoA",
    c"cuMemcpyHtoAAsync",
    c"cuMemcpyHtoAAsync_v2",
    c"cuMemcpyHtoAAsync_v2_ptsz",
    c"cuMemcpyHtoA_v2",
    c"cuMemcpyHtoA_v2_ptds",
    c"cuMemcpyHtoD",
    c"cuMemcpyHtoDAsync",
    c"cuMemcpyHtoDAsync_v2",
    c"cuMemcpyHtoDAsync_v2_ptsz",
    c"cuMemcpyHtoD_v2",
    c"cuMemcpyHtoD_v2_ptds",
    c"cuMemcpyPeer",
    c"cuMemcpyPeerAsync",
    c"cuMemcpyPeerAsync_ptsz",
    c"cuMemcpyPeer_ptds",
    c"cuMemcpyWithAttributesAsync",
    c"cuMemcpyWithAttributesAsync_ptsz",
    c"cuMemcpy_ptds",
    c"cuMemsetD16",
    c"cuMemsetD16Async",
    c"cuMemsetD16Async_ptsz",
    c"cuMemsetD16_v2",
    c"cuMemsetD16_v2_ptds",
    c"cuMemsetD2D16",
    c"cuMemsetD2D16Async",
    c"cuMemsetD2D16Async_ptsz",
    c"cuMemsetD2D16_v2",
    c"cuMemsetD2D16_v2_ptds",
    c"cuMemsetD2D32",
    c"cuMemsetD2D32Async",
    c"cuMemsetD2D32Async_ptsz",
    c"cuMemsetD2D32_v2",
    c"cuMemsetD2D32_v2_ptds",
    c"cuMemsetD2D8",
    c"cuMemsetD2D8Async",
    c"cuMemsetD2D8Async_ptsz",
    c"cuMemsetD2D8_v2",
    c"cuMemsetD2D8_v2_ptds",
    c"cuMemsetD32",
    c"cuMemsetD32Async",
    c"cuMemsetD32Async_ptsz",
    c"cuMemsetD32_v2",
    c"cuMemsetD32_v2_ptds",
    c"cuMemsetD8",
    c"cuMemsetD8Async",
    c"cuMemsetD8Async_ptsz",
    c"cuMemsetD8_v2",
    c"cuMemsetD8_v2_ptds",
    c"cuMipmappedArrayCreate",
    c"cuMipmappedArrayDestroy",
    c"cuMipmappedArrayGetLevel",
    c"cuMipmappedArrayGetMemoryRequirements",
    c"cuMipmappedArrayGetSparseProperties",
    c"cuModuleEnumerateFunctions",
    c"cuModuleGetFunction",
    c"cuModuleGetFunctionCount",
    c"cuModuleGetGlobal",
    c"cuModuleGetGlobal_v2",
    c"cuModuleGetLoadingMode",
    c"cuModuleGetSurfRef",
    c"cuModuleGetTexRef",
    c"cuModuleLoad",
    c"cuModuleLoadData",
    c"cuModuleLoadDataEx",
    c"cuModuleLoadFatBinary",
    c"cuModuleUnload",
    c"cuMulticastAddDevice",
    c"cuMulticastBindAddr",
    c"cuMulticastBindAddr_v2",
    c"cuMulticastBindMem",
    c"cuMulticastBindMem_v2",
    c"cuMulticastCreate",
    c"cuMulticastGetGranularity",
    c"cuMulticastUnbind",
    c"cuOccupancyAvailableDynamicSMemPerBlock",
    c"cuOccupancyMaxActiveBlocksPerMultiprocessor",
    c"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    c"cuOccupancyMaxActiveClusters",
    c"cuOccupancyMaxPotentialBlockSize",
    c"cuOccupancyMaxPotentialBlockSizeWithFlags",
    c"cuOccupancyMaxPotentialClusterSize",
    c"cuParamSetSize",
    c"cuParamSetTexRef",
    c"cuParamSetf",
    c"cuParamSeti",
    c"cuParamSetv",
    c"cuPointerGetAttribute",
    c"cuPointerGetAttributes",
    c"cuPointerSetAttribute",
    c"cuSignalExternalSemaphoresAsync",
    c"cuSignalExternalSemaphoresAsync_ptsz",
    c"cuStreamAddCallback",
    c"cuStreamAddCallback_ptsz",
    c"cuStreamAttachMemAsync",
    c"cuStreamAttachMemAsync_ptsz",
    c"cuStreamBatchMemOp",
    c"cuStreamBatchMemOp_ptsz",
    c"cuStreamBatchMemOp_v2",
    c"cuStreamBatchMemOp_v2_ptsz",
    c"cuStreamBeginCapture",
    c"cuStreamBeginCaptureToCig",
    c"cuStreamBeginCaptureToCig_ptsz",
    c"cuStreamBeginCaptureToGraph",
    c"cuStreamBeginCaptureToGraph_ptsz",
    c"cuStreamBeginCapture_ptsz",
    c"cuStreamBeginCapture_v2",
    c"cuStreamBeginCapture_v2_ptsz",
    c"cuStreamBeginRecaptureToGraph",
    c"cuStreamBeginRecaptureToGraph_ptsz",
    c"cuStreamCopyAttributes",
    c"cuStreamCopyAttributes_ptsz",
    c"cuStreamCreate",
    c"cuStreamCreateWithPriority",
    c"cuStreamDestroy",
    c"cuStreamDestroy_v2",
    c"cuStreamEndCapture",
    c"cuStreamEndCaptureToCig",
    c"cuStreamEndCaptureToCig_ptsz",
    c"cuStreamEndCapture_ptsz",
    c"cuStreamGetAttribute",
    c"cuStreamGetAttribute_ptsz",
    c"cuStreamGetCaptureInfo",
    c"cuStreamGetCaptureInfo_ptsz",
    c"cuStreamGetCaptureInfo_v2",
    c"cuStreamGetCaptureInfo_v2_ptsz",
    c"cuStreamGetCaptureInfo_v3",
    c"cuStreamGetCaptureInfo_v3_ptsz",
    c"cuStreamGetCtx",
    c"cuStreamGetCtx_ptsz",
    c"cuStreamGetCtx_v2",
    c"cuStreamGetCtx_v2_ptsz",
    c"cuStreamGetDevResource",
    c"cuStreamGetDevResource_ptsz",
    c"cuStreamGetDevice",
    c"cuStreamGetDevice_ptsz",
    c"cuStreamGetFlags",
    c"cuStreamGetFlags_ptsz",
    c"cuStreamGetGreenCtx",
    c"cuStreamGetId",
    c"cuStreamGetId_ptsz",
    c"cuStreamGetPriority",
    c"cuStreamGetPriority_ptsz",
    c"cuStreamIsCapturing",
    c"cuStreamIsCapturing_ptsz",
    c"cuStreamQuery",
    c"cuStreamQuery_ptsz",
    c"cuStreamSetAttribute",
    c"cuStreamSetAttribute_ptsz",
    c"cuStreamSynchronize",
    c"cuStreamSynchronize_ptsz",
    c"cuStreamUpdateCaptureDependencies",
    c"cuStreamUpdateCaptureDependencies_ptsz",
    c"cuStreamUpdateCaptureDependencies_v2",
    c"cuStreamUpdateCaptureDependencies_v2_ptsz",
    c"cuStreamWaitEvent",
    c"cuStreamWaitEvent_ptsz",
    c"cuStreamWaitValue32",
    c"cuStreamWaitValue32_ptsz",
    c"cuStreamWaitValue32_v2",
    c"cuStreamWaitValue32_v2_ptsz",
    c"cuStreamWaitValue64",
    c"cuStreamWaitValue64_ptsz",
    c"cuStreamWaitValue64_v2",
    c"cuStreamWaitValue64_v2_ptsz",
    c"cuStreamWriteValue32",
    c"cuStreamWriteValue32_ptsz",
    c"cuStreamWriteValue32_v2",
    c"cuStreamWriteValue32_v2_ptsz",
    c"cuStreamWriteValue64",
    c"cuStreamWriteValue64_ptsz",
    c"cuStreamWriteValue64_v2",
    c"cuStreamWriteValue64_v2_ptsz",
    c"cuSurfObjectCreate",
    c"cuSurfObjectDestroy",
    c"cuSurfObjectGetResourceDesc",
    c"cuSurfRefGetArray",
    c"cuSurfRefSetArray",
    c"cuTensorMapEncodeIm2col",
    c"cuTensorMapEncodeIm2colWide",
    c"cuTensorMapEncodeTiled",
    c"cuTensorMapReplaceAddress",
    c"cuTensorMapSetAllocationClass",
    c"cuTexObjectCreate",
    c"cuTexObjectDestroy",
    c"cuTexObjectGetResourceDesc",
    c"cuTexObjectGetResourceViewDesc",
    c"cuTexObjectGetTextureDesc",
    c"cuTexRefCreate",
    c"cuTexRefDestroy",
    c"cuTexRefGetAddress",
    c"cuTexRefGetAddressMode",
    c"cuTexRefGetAddress_v2",
    c"cuTexRefGetArray",
    c"cuTexRefGetBorderColor",
    c"cuTexRefGetFilterMode",
    c"cuTexRefGetFlags",
    c"cuTexRefGetFormat",
    c"cuTexRefGetMaxAnisotropy",
    c"cuTexRefGetMipmapFilterMode",
    c"cuTexRefGetMipmapLevelBias",
    c"cuTexRefGetMipmapLevelClamp",
    c"cuTexRefGetMipmappedArray",
    c"cuTexRefSetAddress",
    c"cuTexRefSetAddress2D",
    c"cuTexRefSetAddress2D_v2",
    c"cuTexRefSetAddress2D_v3",
    c"cuTexRefSetAddressMode",
    c"cuTexRefSetAddress_v2",
    c"cuTexRefSetArray",
    c"cuTexRefSetBorderColor",
    c"cuTexRefSetFilterMode",
    c"cuTexRefSetFlags",
    c"cuTexRefSetFormat",
    c"cuTexRefSetMaxAnisotropy",
    c"cuTexRefSetMipmapFilterMode",
    c"cuTexRefSetMipmapLevelBias",
    c"cuTexRefSetMipmapLevelClamp",
    c"cuTexRefSetMipmappedArray",
    c"cuThreadExchangeStreamCaptureMode",
    c"cuUserObjectCreate",
    c"cuUserObjectRelease",
    c"cuUserObjectRetain",
    c"cuWaitExternalSemaphoresAsync",
    c"cuWaitExternalSemaphoresAsync_ptsz",
];

/// What takes the place of each.
#[rustfmt::skip]
pub static WRAPPERS: [Wrapper; COUNT] = [
    Wrapper(exports::cuArray3DCreate as *const ()),
    Wrapper(exports::cuArray3DCreate_v2 as *const ()),
    Wrapper(exports::cuArray3DGetDescriptor as *const ()),
    Wrapper(exports::cuArray3DGetDescriptor_v2 as *const ()),
    Wrapper(exports::cuArrayCreate as *const ()),
    Wrapper(exports::cuArrayCreate_v2 as *const ()),
    Wrapper(exports::cuArrayDestroy as *const ()),
    Wrapper(exports::cuArrayGetDescriptor as *const ()),
    Wrapper(exports::cuArrayGetDescriptor_v2 as *const ()),
    Wrapper(exports::cuArrayGetMemoryRequirements as *const ()),
    Wrapper(exports::cuArrayGetPlane as *const ()),
    Wrapper(exports::cuArrayGetSparseProperties as *const ()),
    Wrapper(exports::cuCheckpointOperationComplete as *const ()),
    Wrapper(exports::cuCheckpointProcessCheckpoint as *const ()),
    Wrapper(exports::cuCheckpointProcessGetRestoreThreadId as *const ()),
    Wrapper(exports::cuCheckpointProcessGetState as *const ()),
    Wrapper(exports::cuCheckpointProcessLock as *const ()),
    Wrapper(exports::cuCheckpointProcessRestore as *const ()),
    Wrapper(exports::cuCheckpointProcessUnlock as *const ()),
    Wrapper(exports::cuCoredumpDeregisterCompleteCallback as *const ()),
    Wrapper(exports::cuCoredumpDeregisterStartCallback as *const ()),
    Wrapper(exports::cuCoredumpGetAttribute as *const ()),
    Wrapper(exports::cuCoredumpGetAttributeGlobal as *const ()),
    Wrapper(exports::cuCoredumpRegisterCompleteCallback as *const ()),
    Wrapper(exports::cuCoredumpRegisterStartCallback as *const ()),
    Wrapper(exports::cuCoredumpSetAttribute as *const ()),
    Wrapper(exports::cuCoredumpSetAttributeGlobal as *const ()),
    Wrapper(exports::cuCtxAttach as *const ()),
    Wrapper(exports::cuCtxCreate as *const ()),
    Wrapper(exports::cuCtxCreate_v2 as *const ()),
    Wrapper(exports::cuCtxCreate_v3 as *const ()),
    Wrapper(exports::cuCtxCreate_v4 as *const ()),
    Wrapper(exports::cuCtxDestroy as *const ()),
    Wrapper(exports::cuCtxDestroy_v2 as *const ()),
    Wrapper(exports::cuCtxDetach as *const ()),
    Wrapper(exports::cuCtxDisablePeerAccess as *const ()),
    Wrapper(exports::cuCtxEnablePeerAccess as *const ()),
    Wrapper(exports::cuCtxFromGreenCtx as *const ()),
    Wrapper(exports::cuCtxGetApiVersion as *const ()),
    Wrapper(exports::cuCtxGetCacheConfig as *const ()),
    Wrapper(exports::cuCtxGetCurrent as *const ()),
    Wrapper(exports::cuCtxGetDevResource as *const ()),
    Wrapper(exports::cuCtxGetDevice as *const ()),
    Wrapper(exports::cuCtxGetDevice_v2 as *const ()),
    Wrapper(exports::cuCtxGetExecAffinity as *const ()),
    Wrapper(exports::cuCtxGetFlags as *const ()),
    Wrapper(exports::cuCtxGetId as *const ()),
    Wrapper(exports::cuCtxGetLimit as *const ()),
    Wrapper(exports::cuCtxGetSharedMemConfig as *const ()),
    Wrapper(exports::cuCtxGetStreamPriorityRange as *const ()),
    Wrapper(exports::cuCtxPopCurrent as *const ()),
    Wrapper(exports::cuCtxPopCurrent_v2 as *const ()),
    Wrapper(exports::cuCtxPushCurrent as *const ()),
    Wrapper(exports::cuCtxPushCurrent_v2 as *const ()),
    Wrapper(exports::cuCtxRecordEvent as *const ()),
    Wrapper(exports::cuCtxResetPersistingL2Cache as *const ()),
    Wrapper(exports::cuCtxSetCacheConfig as *const ()),
    Wrapper(exports::cuCtxSetCurrent as *const ()),
    Wrapper(exports::cuCtxSetFlags as *const ()),
    Wrapper(exports::cuCtxSetLimit as *const ()),
    Wrapper(exports::cuCtxSetSharedMemConfig as *const ()),
    Wrapper(exports::cuCtxSynchronize as *const ()),
    Wrapper(exports::cuCtxSynchronize_v2 as *const ()),
    Wrapper(exports::cuCtxWaitEvent as *const ()),
    Wrapper(exports::cuDestroyExternalMemory as *const ()),
    Wrapper(exports::cuDestroyExternalSemaphore as *const ()),
    Wrapper(exports::cuDevResourceGenerateDesc as *const ()),
    Wrapper(exports::cuDevSmResourceSplit as *const ()),
    Wrapper(exports::cuDevSmResourceSplitByCount as *const ()),
    Wrapper(exports::cuDeviceCanAccessPeer as *const ()),
    Wrapper(exports::cuDeviceComputeCapability as *const ()),
    Wrapper(exports::cuDeviceGet as *const ()),
    Wrapper(exports::cuDeviceGetAttribute as *const ()),
    Wrapper(exports::cuDeviceGetByPCIBusId as *const ()),
    Wrapper(exports::cuDeviceGetCliqueCount as *const ()),
    Wrapper(exports::cuDeviceGetCliqueInfo as *const ()),
    Wrapper(exports::cuDeviceGetCount as *const ()),
    Wrapper(exports::cuDeviceGetDefaultMemPool as *const ()),
    Wrapper(exports::cuDeviceGetDevResource as *const ()),
    Wrapper(exports::cuDeviceGetExecAffinitySupport as *const ()),
    Wrapper(exports::cuDeviceGetFabricClusterUuid as *const ()),
    Wrapper(exports::cuDeviceGetGraphMemAttribute as *const ()),
    Wrapper(exports::cuDeviceGetHostAtomicCapabilities as *const ()),
    Wrapper(exports::cuDeviceGetLuid as *const ()),
    Wrapper(exports::cuDeviceGetMemPool as *const ()),
    Wrapper(exports::cuDeviceGetName as *const ()),
    Wrapper(exports::cuDeviceGetNvSciSyncAttributes as *const ()),
    Wrapper(exports::cuDeviceGetP2PAtomicCapabilities as *const ()),
    Wrapper(exports::cuDeviceGetP2PAttribute as *const ()),
    Wrapper(exports::cuDeviceGetPCIBusId as *const ()),
    Wrapper(exports::cuDeviceGetProperties as *const ()),
    Wrapper(exports::cuDeviceGetTexture1DLinearMaxWidth as *const ()),
    Wrapper(exports::cuDeviceGetUuid as *const ()),
    Wrapper(exports::cuDeviceGetUuid_v2 as *const ()),
    Wrapper(exports::cuDeviceGraphMemTrim as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxGetState as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxRelease as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxRelease_v2 as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxReset as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxReset_v2 as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxRetain as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxSetFlags as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxSetFlags_v2 as *const ()),
    Wrapper(exports::cuDeviceRegisterAsyncNotification as *const ()),
    Wrapper(exports::cuDeviceSetGraphMemAttribute as *const ()),
    Wrapper(exports::cuDeviceSetMemPool as *const ()),
    Wrapper(exports::cuDeviceTotalMem as *const ()),
    Wrapper(exports::cuDeviceTotalMem_v2 as *const ()),
    Wrapper(exports::cuDeviceUnregisterAsyncNotification as *const ()),
    Wrapper(exports::cuDriverGetVersion as *const ()),
    Wrapper(exports::cuEventCreate as *const ()),
    Wrapper(exports::cuEventDestroy as *const ()),
    Wrapper(exports::cuEventDestroy_v2 as *const ()),
    Wrapper(exports::cuEventElapsedTime as *const ()),
    Wrapper(exports::cuEventElapsedTime_v2 as *const ()),
    Wrapper(exports::cuEventQuery as *const ()),
    Wrapper(exports::cuEventRecord as *const ()),
    Wrapper(exports::cuEventRecordWithFlags as *const ()),
    Wrapper(exports::cuEventRecordWithFlags_ptsz as *const ()),
    Wrapper(exports::cuEventRecord_ptsz as *const ()),
    Wrapper(exports::cuEventSynchronize as *const ()),
    Wrapper(exports::cuExternalMemoryGetMappedBuffer as *const ()),
    Wrapper(exports::cuExternalMemoryGetMappedMipmappedArray as *const ()),
    Wrapper(exports::cuFabricCpyBatchAsync as *const ()),
    Wrapper(exports::cuFabricCpyBatchAsync_ptsz as *const ()),
    Wrapper(exports::cuFlushGPUDirectRDMAWrites as *const ()),
    Wrapper(exports::cuFuncGetAttribute as *const ()),
    Wrapper(exports::cuFuncGetModule as *const ()),
    Wrapper(exports::cuFuncGetName as *const ()),
    Wrapper(exports::cuFuncGetParamCount as *const ()),
    Wrapper(exports::cuFuncGetParamInfo as *const ()),
    Wrapper(exports::cuFuncIsLoaded as *const ()),
    Wrapper(exports::cuFuncLoad as *const ()),
    Wrapper(exports::cuFuncSetAttribute as *const ()),
    Wrapper(exports::cuFuncSetBlockShape as *const ()),
    Wrapper(exports::cuFuncSetCacheConfig as *const ()),
    Wrapper(exports::cuFuncSetSharedMemConfig as *const ()),
    Wrapper(exports::cuFuncSetSharedSize as *const ()),
    Wrapper(exports::cuGetErrorName as *const ()),
    Wrapper(exports::cuGetErrorString as *const ()),
    Wrapper(exports::cuGetExportTable as *const ()),
    Wrapper(exports::cuGetProcAddress as *const ()),
    Wrapper(exports::cuGetProcAddress_v2 as *const ()),
    Wrapper(exports::cuGraphAddBatchMemOpNode as *const ()),
    Wrapper(exports::cuGraphAddChildGraphNode as *const ()),
    Wrapper(exports::cuGraphAddDependencies as *const ()),
    Wrapper(exports::cuGraphAddDependencies_v2 as *const ()),
    Wrapper(exports::cuGraphAddEmptyNode as *const ()),
    Wrapper(exports::cuGraphAddEventRecordNode as *const ()),
    Wrapper(exports::cuGraphAddEventWaitNode as *const ()),
    Wrapper(exports::cuGraphAddExternalSemaphoresSignalNode as *const ()),
    Wrapper(exports::cuGraphAddExternalSemaphoresWaitNode as *const ()),
    Wrapper(exports::cuGraphAddHostNode as *const ()),
    Wrapper(exports::cuGraphAddKernelNode as *const ()),
    Wrapper(exports::cuGraphAddKernelNode_v2 as *const ()),
    Wrapper(exports::cuGraphAddMemAllocNode as *const ()),
    Wrapper(exports::cuGraphAddMemFreeNode as *const ()),
    Wrapper(exports::cuGraphAddMemcpyNode as *const ()),
    Wrapper(exports::cuGraphAddMemsetNode as *const ()),
    Wrapper(exports::cuGraphAddNode as *const ()),
    Wrapper(exports::cuGraphAddNode_v2 as *const ()),
    Wrapper(exports::cuGraphAddNode_v3 as *const ()),
    Wrapper(exports::cuGraphBatchMemOpNodeGetParams as *const ()),
    Wrapper(exports::cuGraphBatchMemOpNodeSetParams as *const ()),
    Wrapper(exports::cuGraphChildGraphNodeGetGraph as *const ()),
    Wrapper(exports::cuGraphClone as *const ()),
    Wrapper(exports::cuGraphConditionalHandleCreate as *const ()),
    Wrapper(exports::cuGraphCreate as *const ()),
    Wrapper(exports::cuGraphDebugDotPrint as *const ()),
    Wrapper(exports::cuGraphDestroy as *const ()),
    Wrapper(exports::cuGraphDestroyNode as *const ()),
    Wrapper(exports::cuGraphEventRecordNodeGetEvent as *const ()),
    Wrapper(exports::cuGraphEventRecordNodeSetEvent as *const ()),
    Wrapper(exports::cuGraphEventWaitNodeGetEvent as *const ()),
    Wrapper(exports::cuGraphEventWaitNodeSetEvent as *const ()),
    Wrapper(exports::cuGraphExecBatchMemOpNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecChildGraphNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecDestroy as *const ()),
    Wrapper(exports::cuGraphExecEventRecordNodeSetEvent as *const ()),
    Wrapper(exports::cuGraphExecEventWaitNodeSetEvent as *const ()),
    Wrapper(exports::cuGraphExecExternalSemaphoresSignalNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecExternalSemaphoresWaitNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecGetFlags as *const ()),
    Wrapper(exports::cuGraphExecGetId as *const ()),
    Wrapper(exports::cuGraphExecHostNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecKernelNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecKernelNodeSetParams_v2 as *const ()),
    Wrapper(exports::cuGraphExecMemcpyNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecMemsetNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecUpdate as *const ()),
    Wrapper(exports::cuGraphExecUpdate_v2 as *const ()),
    Wrapper(exports::cuGraphExternalSemaphoresSignalNodeGetParams as *const ()),
    Wrapper(exports::cuGraphExternalSemaphoresSignalNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExternalSemaphoresWaitNodeGetParams as *const ()),
    Wrapper(exports::cuGraphExternalSemaphoresWaitNodeSetParams as *const ()),
    Wrapper(exports::cuGraphGetEdges as *const ()),
    Wrapper(exports::cuGraphGetEdges_v2 as *const ()),
    Wrapper(exports::cuGraphGetId as *const ()),
    Wrapper(exports::cuGraphGetNodes as *const ()),
    Wrapper(exports::cuGraphGetRootNodes as *const ()),
    Wrapper(exports::cuGraphHostNodeGetParams as *const ()),
    Wrapper(exports::cuGraphHostNodeSetParams as *const ()),
    Wrapper(exports::cuGraphInstantiate as *const ()),
    Wrapper(exports::cuGraphInstantiateWithFlags as *const ()),
    Wrapper(exports::cuGraphInstantiateWithParams as *const ()),
    Wrapper(exports::cuGraphInstantiateWithParams_ptsz as *const ()),
    Wrapper(exports::cuGraphInstantiate_v2 as *const ()),
    Wrapper(exports::cuGraphKernelNodeCopyAttributes as *const ()),
    Wrapper(exports::cuGraphKernelNodeGetAttribute as *const ()),
    Wrapper(exports::cuGraphKernelNodeGetParams as *const ()),
    Wrapper(exports::cuGraphKernelNodeGetParams_v2 as *const ()),
    Wrapper(exports::cuGraphKernelNodeSetAttribute as *const ()),
    Wrapper(exports::cuGraphKernelNodeSetParams as *const ()),
    Wrapper(exports::cuGraphKernelNodeSetParams_v2 as *const ()),
    Wrapper(exports::cuGraphLaunch as *const ()),
    Wrapper(exports::cuGraphLaunch_ptsz as *const ()),
    Wrapper(exports::cuGraphMemAllocNodeGetParams as *const ()),
    Wrapper(exports::cuGraphMemFreeNodeGetParams as *const ()),
    Wrapper(exports::cuGraphMemcpyNodeGetParams as *const ()),
    Wrapper(exports::cuGraphMemcpyNodeSetParams as *const ()),
    Wrapper(exports::cuGraphMemsetNodeGetParams as *const ()),
    Wrapper(exports::cuGraphMemsetNodeSetParams as *const ()),
    Wrapper(exports::cuGraphNodeFindInClone as *const ()),
    Wrapper(exports::cuGraphNodeGetContainingGraph as *const ()),
    Wrapper(exports::cuGraphNodeGetDependencies as *const ()),
    Wrapper(exports::cuGraphNodeGetDependencies_v2 as *const ()),
    Wrapper(exports::cuGraphNodeGetDependentNodes as *const ()),
    Wrapper(exports::cuGraphNodeGetDependentNodes_v2 as *const ()),
    Wrapper(exports::cuGraphNodeGetEnabled as *const ()),
    Wrapper(exports::cuGraphNodeGetLocalId as *const ()),
    Wrapper(exports::cuGraphNodeGetParams as *const ()),
    Wrapper(exports::cuGraphNodeGetToolsId as *const ()),
    Wrapper(exports::cuGraphNodeGetType as *const ()),
    Wrapper(exports::cuGraphNodeSetEnabled as *const ()),
    Wrapper(exports::cuGraphNodeSetParams as *const ()),
    Wrapper(exports::cuGraphNodeSetParams_v2 as *const ()),
    Wrapper(exports::cuGraphReleaseUserObject as *const ()),
    Wrapper(exports::cuGraphRemoveDependencies as *const ()),
    Wrapper(exports::cuGraphRemoveDependencies_v2 as *const ()),
    Wrapper(exports::cuGraphRetainUserObject as *const ()),
    Wrapper(exports::cuGraphUpload as *const ()),
    Wrapper(exports::cuGraphUpload_ptsz as *const ()),
    Wrapper(exports::cuGraphicsMapResources as *const ()),
    Wrapper(exports::cuGraphicsMapResources_ptsz as *const ()),
    Wrapper(exports::cuGraphicsResourceGetMappedMipmappedArray as *const ()),
    Wrapper(exports::cuGraphicsResourceGetMappedPointer as *const ()),
    Wrapper(exports::cuGraphicsResourceGetMappedPointer_v2 as *const ()),
    Wrapper(exports::cuGraphicsResourceSetMapFlags as *const ()),
    Wrapper(exports::cuGraphicsResourceSetMapFlags_v2 as *const ()),
    Wrapper(exports::cuGraphicsSubResourceGetMappedArray as *const ()),
    Wrapper(exports::cuGraphicsUnmapResources as *const ()),
    Wrapper(exports::cuGraphicsUnmapResources_ptsz as *const ()),
    Wrapper(exports::cuGraphicsUnregisterResource as *const ()),
    Wrapper(exports::cuGreenCtxCreate as *const ()),
    Wrapper(exports::cuGreenCtxDestroy as *const ()),
    Wrapper(exports::cuGreenCtxGetDevResource as *const ()),
    Wrapper(exports::cuGreenCtxGetId as *const ()),
    Wrapper(exports::cuGreenCtxRecordEvent as *const ()),
    Wrapper(exports::cuGreenCtxStreamCreate as *const ()),
    Wrapper(exports::cuGreenCtxWaitEvent as *const ()),
    Wrapper(exports::cuImportExternalMemory as *const ()),
    Wrapper(exports::cuImportExternalSemaphore as *const ()),
    Wrapper(exports::cuInit as *const ()),
    Wrapper(exports::cuIpcCloseMemHandle as *const ()),
    Wrapper(exports::cuIpcGetEventHandle as *const ()),
    Wrapper(exports::cuIpcGetMemHandle as *const ()),
    Wrapper(exports::cuIpcOpenEventHandle as *const ()),
    Wrapper(exports::cuIpcOpenMemHandle as *const ()),
    Wrapper(exports::cuIpcOpenMemHandle_v2 as *const ()),
    Wrapper(exports::cuKernelGetAttribute as *const ()),
    Wrapper(exports::cuKernelGetFunction as *const ()),
    Wrapper(exports::cuKernelGetLibrary as *const ()),
    Wrapper(exports::cuKernelGetName as *const ()),
    Wrapper(exports::cuKernelGetParamCount as *const ()),
    Wrapper(exports::cuKernelGetParamInfo as *const ()),
    Wrapper(exports::cuKernelSetAttribute as *const ()),
    Wrapper(exports::cuKernelSetCacheConfig as *const ()),
    Wrapper(exports::cuLaunch as *const ()),
    Wrapper(exports::cuLaunchCooperativeKernel as *const ()),
    Wrapper(exports::cuLaunchCooperativeKernelMultiDevice as *const ()),
    Wrapper(exports::cuLaunchCooperativeKernel_ptsz as *const ()),
    Wrapper(exports::cuLaunchGrid as *const ()),
    Wrapper(exports::cuLaunchGridAsync as *const ()),
    Wrapper(exports::cuLaunchHostFunc as *const ()),
    Wrapper(exports::cuLaunchHostFunc_ptsz as *const ()),
    Wrapper(exports::cuLaunchHostFunc_v2 as *const ()),
    Wrapper(exports::cuLaunchHostFunc_v2_ptsz as *const ()),
    Wrapper(exports::cuLaunchKernel as *const ()),
    Wrapper(exports::cuLaunchKernelEx as *const ()),
    Wrapper(exports::cuLaunchKernelEx_ptsz as *const ()),
    Wrapper(exports::cuLaunchKernel_ptsz as *const ()),
    Wrapper(exports::cuLibraryEnumerateKernels as *const ()),
    Wrapper(exports::cuLibraryGetGlobal as *const ()),
    Wrapper(exports::cuLibraryGetKernel as *const ()),
    Wrapper(exports::cuLibraryGetKernelCount as *const ()),
    Wrapper(exports::cuLibraryGetManaged as *const ()),
    Wrapper(exports::cuLibraryGetModule as *const ()),
    Wrapper(exports::cuLibraryGetUnifiedFunction as *const ()),
    Wrapper(exports::cuLibraryLoadData as *const ()),
    Wrapper(exports::cuLibraryLoadFromFile as *const ()),
    Wrapper(exports::cuLibraryUnload as *const ()),
    Wrapper(exports::cuLinkAddData as *const ()),
    Wrapper(exports::cuLinkAddData_v2 as *const ()),
    Wrapper(exports::cuLinkAddFile as *const ()),
    Wrapper(exports::cuLinkAddFile_v2 as *const ()),
    Wrapper(exports::cuLinkComplete as *const ()),
    Wrapper(exports::cuLinkCreate as *const ()),
    Wrapper(exports::cuLinkCreate_v2 as *const ()),
    Wrapper(exports::cuLinkDestroy as *const ()),
    Wrapper(exports::cuLogicalEndpointAddDevice as *const ()),
    Wrapper(exports::cuLogicalEndpointBindAddr as *const ()),
    Wrapper(exports::cuLogicalEndpointBindMem as *const ()),
    Wrapper(exports::cuLogicalEndpointCreate as *const ()),
    Wrapper(exports::cuLogicalEndpointDestroy as *const ()),
    Wrapper(exports::cuLogicalEndpointExport as *const ()),
    Wrapper(exports::cuLogicalEndpointGetLimits as *const ()),
    Wrapper(exports::cuLogicalEndpointIdRelease as *const ()),
    Wrapper(exports::cuLogicalEndpointIdReserve as *const ()),
    Wrapper(exports::cuLogicalEndpointImport as *const ()),
    Wrapper(exports::cuLogicalEndpointQuery as *const ()),
    Wrapper(exports::cuLogicalEndpointUnbind as *const ()),
    Wrapper(exports::cuLogsCurrent as *const ()),
    Wrapper(exports::cuLogsDumpToFile as *const ()),
    Wrapper(exports::cuLogsDumpToMemory as *const ()),
    Wrapper(exports::cuLogsRegisterCallback as *const ()),
    Wrapper(exports::cuLogsUnregisterCallback as *const ()),
    Wrapper(exports::cuMemAddressFree as *const ()),
    Wrapper(exports::cuMemAddressReserve as *const ()),
    Wrapper(exports::cuMemAdvise as *const ()),
    Wrapper(exports::cuMemAdvise_v2 as *const ()),
    Wrapper(exports::cuMemAlloc as *const ()),
    Wrapper(exports::cuMemAllocAsync as *const ()),
    Wrapper(exports::cuMemAllocAsync_ptsz as *const ()),
    Wrapper(exports::cuMemAllocFromPoolAsync as *const ()),
    Wrapper(exports::cuMemAllocFromPoolAsync_ptsz as *const ()),
    Wrapper(exports::cuMemAllocHost as *const ()),
    Wrapper(exports::cuMemAllocHost_v2 as *const ()),
    Wrapper(exports::cuMemAllocManaged as *const ()),
    Wrapper(exports::cuMemAllocPitch as *const ()),
    Wrapper(exports::cuMemAllocPitch_v2 as *const ()),
    Wrapper(exports::cuMemAlloc_v2 as *const ()),
    Wrapper(exports::cuMemBatchDecompressAsync as *const ()),
    Wrapper(exports::cuMemBatchDecompressAsync_ptsz as *const ()),
    Wrapper(exports::cuMemCreate as *const ()),
    Wrapper(exports::cuMemDiscardAndPrefetchBatchAsync as *const ()),
    Wrapper(exports::cuMemDiscardAndPrefetchBatchAsync_ptsz as *const ()),
    Wrapper(exports::cuMemDiscardBatchAsync as *const ()),
    Wrapper(exports::cuMemDiscardBatchAsync_ptsz as *const ()),
    Wrapper(exports::cuMemExportToShareableHandle as *const ()),
    Wrapper(exports::cuMemFree as *const ()),
    Wrapper(exports::cuMemFreeAsync as *const ()),
    Wrapper(exports::cuMemFreeAsync_ptsz as *const ()),
    Wrapper(exports::cuMemFreeHost as *const ()),
    Wrapper(exports::cuMemFree_v2 as *const ()),
    Wrapper(exports::cuMemGetAccess as *const ()),
    Wrapper(exports::cuMemGetAddressRange as *const ()),
    Wrapper(exports::cuMemGetAddressRange_v2 as *const ()),
    Wrapper(exports::cuMemGetAllocationGranularity as *const ()),
    Wrapper(exports::cuMemGetAllocationPropertiesFromHandle as *const ()),
    Wrapper(exports::cuMemGetDefaultMemPool as *const ()),
    Wrapper(exports::cuMemGetHandleForAddressRange as *const ()),
    Wrapper(exports::cuMemGetInfo as *const ()),
    Wrapper(exports::cuMemGetInfo_v2 as *const ()),
    Wrapper(exports::cuMemGetLocationInfo as *const ()),
    Wrapper(exports::cuMemGetMemPool as *const ()),
    Wrapper(exports::cuMemHostAlloc as *const ()),
    Wrapper(exports::cuMemHostGetDevicePointer as *const ()),
    Wrapper(exports::cuMemHostGetDevicePointer_v2 as *const ()),
    Wrapper(exports::cuMemHostGetFlags as *const ()),
    Wrapper(exports::cuMemHostRegister as *const ()),
    Wrapper(exports::cuMemHostRegister_v2 as *const ()),
    Wrapper(exports::cuMemHostUnregister as *const ()),
    Wrapper(exports::cuMemImportFromShareableHandle as *const ()),
    Wrapper(exports::cuMemMap as *const ()),
    Wrapper(exports::cuMemMapArrayAsync as *const ()),
    Wrapper(exports::cuMemMapArrayAsync_ptsz as *const ()),
    Wrapper(exports::cuMemPoolCreate as *const ()),
    Wrapper(exports::cuMemPoolDestroy as *const ()),
    Wrapper(exports::cuMemPoolExportPointer as *const ()),
    Wrapper(exports::cuMemPoolExportToShareableHandle as *const ()),
    Wrapper(exports::cuMemPoolGetAccess as *const ()),
    Wrapper(exports::cuMemPoolGetAttribute as *const ()),
    Wrapper(exports::cuMemPoolImportFromShareableHandle as *const ()),
    Wrapper(exports::cuMemPoolImportPointer as *const ()),
    Wrapper(exports::cuMemPoolSetAccess as *const ()),
    Wrapper(exports::cuMemPoolSetAttribute as *const ()),
    Wrapper(exports::cuMemPoolTrimTo as *const ()),
    Wrapper(exports::cuMemPrefetchAsync as *const ()),
    Wrapper(exports::cuMemPrefetchAsync_ptsz as *const ()),
    Wrapper(exports::cuMemPrefetchAsync_v2 as *const ()),
    Wrapper(exports::cuMemPrefetchAsync_v2_ptsz as *const ()),
    Wrapper(exports::cuMemPrefetchBatchAsync as *const ()),
    Wrapper(exports::cuMemPrefetchBatchAsync_ptsz as *const ()),
    Wrapper(exports::cuMemRangeGetAttribute as *const ()),
    Wrapper(exports::cuMemRangeGetAttributes as *const ()),
    Wrapper(exports::cuMemRelease as *const ()),
    Wrapper(exports::cuMemRetainAllocationHandle as *const ()),
    Wrapper(exports::cuMemSetAccess as *const ()),
    Wrapper(exports::cuMemSetMemPool as *const ()),
    Wrapper(exports::cuMemUnmap as *const ()),
    Wrapper(exports::cuMemcpy as *const ()),
    Wrapper(exports::cuMemcpy2D as *const ()),
    Wrapper(exports::cuMemcpy2DAsync as *const ()),
    Wrapper(exports::cuMemcpy2DAsync_v2 as *const ()),
    Wrapper(exports::cuMemcpy2DAsync_v2_ptsz as *const ()),
    Wrapper(exports::cuMemcpy2DUnaligned as *const ()),
    Wrapper(exports::cuMemcpy2DUnaligned_v2 as *const ()),
    Wrapper(exports::cuMemcpy2DUnaligned_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpy2D_v2 as *const ()),
    Wrapper(exports::cuMemcpy2D_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpy3D as *const ()),
    Wrapper(exports::cuMemcpy3DAsync as *const ()),
    Wrapper(exports::cuMemcpy3DAsync_v2 as *const ()),
    Wrapper(exports::cuMemcpy3DAsync_v2_ptsz as *const ()),
    Wrapper(exports::cuMemcpy3DBatchAsync as *const ()),
    Wrapper(exports::cuMemcpy3DBatchAsync_ptsz as *const ()),
    Wrapper(exports::cuMemcpy3DBatchAsync_v2 as *const ()),
    Wrapper(exports::cuMemcpy3DBatchAsync_v2_ptsz as *const ()),
    Wrapper(exports::cuMemcpy3DPeer as *const ()),
    Wrapper(exports::cuMemcpy3DPeerAsync as *const ()),
    Wrapper(exports::cuMemcpy3DPeerAsync_ptsz as *const ()),
    Wrapper(exports::cuMemcpy3DPeer_ptds as *const ()),
    Wrapper(exports::cuMemcpy3DWithAttributesAsync as *const ()),
    Wrapper(exports::cuMemcpy3DWithAttributesAsync_ptsz as *const ()),
    Wrapper(exports::cuMemcpy3D_v2 as *const ()),
    Wrapper(exports::cuMemcpy3D_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpyAsync as *const ()),
    Wrapper(exports::cuMemcpyAsync_ptsz as *const ()),
    Wrapper(exports::cuMemcpyAtoA as *const ()),
    Wrapper(exports::cuMemcpyAtoA_v2 as *const ()),
    Wrapper(exports::cuMemcpyAtoA_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpyAtoD as *const ()),
    Wrapper(exports::cuMemcpyAtoD_v2 as *const ()),
    Wrapper(exports::cuMemcpyAtoD_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpyAtoH as *const ()),
    Wrapper(exports::cuMemcpyAtoHAsync as *const ()),
    Wrapper(exports::cuMemcpyAtoHAsync_v2 as *const ()),
    Wrapper(exports::cuMemcpyAtoHAsync_v2_ptsz as *const ()),
    Wrapper(exports::cuMemcpyAtoH_v2 as *const ()),
    Wrapper(exports::cuMemcpyAtoH_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpyBatchAsync as *const ()),
    Wrapper(exports::cuMemcpyBatchAsync_ptsz as *const ()),
    Wrapper(exports::cuMemcpyBatchAsync_v2 as *const ()),
    Wrapper(exports::cuMemcpyBatchAsync_v2_ptsz as *const ()),
    Wrapper(exports::cuMemcpyDtoA as *const ()),
    Wrapper(exports::cuMemcpyDtoA_v2 as *const ()),
    Wrapper(exports::cuMemcpyDtoA_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpyDtoD as *const ()),
    Wrapper(exports::cuMemcpyDtoDAsync as *const ()),
    Wrapper(exports::cuMemcpyDtoDAsync_v2 as *const ()),
    Wrapper(exports::cuMemcpyDtoDAsync_v2_ptsz as *const ()),
    Wrapper(exports::cuMemcpyDtoD_v2 as *const ()),
    Wrapper(exports::cuMemcpyDtoD_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpyDtoH as *const ()),
    Wrapper(exports::cuMemcpyDtoHAsync as *const ()),
    Wrapper(exports::cuMemcpyDtoHAsync_v2 as *const ()),
    Wrapper(exports::cuMemcpyDtoHAsync_v2_ptsz as *const ()),
    Wrapper(exports::cuMemcpyDtoH_v2 as *const ()),
    Wrapper(exports::cuMemcpyDtoH_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpyHtoA as *const ()),
    Wrapper(exports::cuMemcpyHtoAAsync as *const ()),
    Wrapper(exports::cuMemcpyHtoAAsync_v2 as *const ()),
    Wrapper(exports::cuMemcpyHtoAAsync_v2_ptsz as *const ()),
    Wrapper(exports::cuMemcpyHtoA_v2 as *const ()),
    Wrapper(exports::cuMemcpyHtoA_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpyHtoD as *const ()),
    Wrapper(exports::cuMemcpyHtoDAsync as *const ()),
    Wrapper(exports::cuMemcpyHtoDAsync_v2 as *const ()),
    Wrapper(exports::cuMemcpyHtoDAsync_v2_ptsz as *const ()),
    Wrapper(exports::cuMemcpyHtoD_v2 as *const ()),
    Wrapper(exports::cuMemcpyHtoD_v2_ptds as *const ()),
    Wrapper(exports::cuMemcpyPeer as *const ()),
    Wrapper(exports::cuMemcpyPeerAsync as *const ()),
    Wrapper(exports::cuMemcpyPeerAsync_ptsz as *const ()),
    Wrapper(exports::cuMemcpyPeer_ptds as *const ()),
    Wrapper(exports::cuMemcpyWithAttributesAsync as *const ()),
    Wrapper(exports::cuMemcpyWithAttributesAsync_ptsz as *const ()),
    Wrapper(exports::cuMemcpy_ptds as *const ()),
    Wrapper(exports::cuMemsetD16 as *const ()),
    Wrapper(exports::cuMemsetD16Async as *const ()),
    Wrapper(exports::cuMemsetD16Async_ptsz as *const ()),
    Wrapper(exports::cuMemsetD16_v2 as *const ()),
    Wrapper(exports::cuMemsetD16_v2_ptds as *const ()),
    Wrapper(exports::cuMemsetD2D16 as *const ()),
    Wrapper(exports::cuMemsetD2D16Async as *const ()),
    Wrapper(exports::cuMemsetD2D16Async_ptsz as *const ()),
    Wrapper(exports::cuMemsetD2D16_v2 as *const ()),
    Wrapper(exports::cuMemsetD2D16_v2_ptds as *const ()),
    Wrapper(exports::cuMemsetD2D32 as *const ()),
    Wrapper(exports::cuMemsetD2D32Async as *const ()),
    Wrapper(exports::cuMemsetD2D32Async_ptsz as *const ()),
    Wrapper(exports::cuMemsetD2D32_v2 as *const ()),
    Wrapper(exports::cuMemsetD2D32_v2_ptds as *const ()),
    Wrapper(exports::cuMemsetD2D8 as *const ()),
    Wrapper(exports::cuMemsetD2D8Async as *const ()),
    Wrapper(exports::cuMemsetD2D8Async_ptsz as *const ()),
    Wrapper(exports::cuMemsetD2D8_v2 as *const ()),
    Wrapper(exports::cuMemsetD2D8_v2_ptds as *const ()),
    Wrapper(exports::cuMemsetD32 as *const ()),
    Wrapper(exports::cuMemsetD32Async as *const ()),
    Wrapper(exports::cuMemsetD32Async_ptsz as *const ()),
    Wrapper(exports::cuMemsetD32_v2 as *const ()),
    Wrapper(exports::cuMemsetD32_v2_ptds as *const ()),
    Wrapper(exports::cuMemsetD8 as *const ()),
    Wrapper(exports::cuMemsetD8Async as *const ()),
    Wrapper(exports::cuMemsetD8Async_ptsz as *const ()),
    Wrapper(exports::cuMemsetD8_v2 as *const ()),
    Wrapper(exports::cuMemsetD8_v2_ptds as *const ()),
    Wrapper(exports::cuMipmappedArrayCreate as *const ()),
    Wrapper(exports::cuMipmappedArrayDestroy as *const ()),
    Wrapper(exports::cuMipmappedArrayGetLevel as *const ()),
    Wrapper(exports::cuMipmappedArrayGetMemoryRequirements as *const ()),
    Wrapper(exports::cuMipmappedArrayGetSparseProperties as *const ()),
    Wrapper(exports::cuModuleEnumerateFunctions as *const ()),
    Wrapper(exports::cuModuleGetFunction as *const ()),
    Wrapper(exports::cuModuleGetFunctionCount as *const ()),
    Wrapper(exports::cuModuleGetGlobal as *const ()),
    Wrapper(exports::cuModuleGetGlobal_v2 as *const ()),
    Wrapper(exports::cuModuleGetLoadingMode as *const ()),
    Wrapper(exports::cuModuleGetSurfRef as *const ()),
    Wrapper(exports::cuModuleGetTexRef as *const ()),
    Wrapper(exports::cuModuleLoad as *const ()),
    Wrapper(exports::cuModuleLoadData as *const ()),
    Wrapper(exports::cuModuleLoadDataEx as *const ()),
    Wrapper(exports::cuModuleLoadFatBinary as *const ()),
    Wrapper(exports::cuModuleUnload as *const ()),
    Wrapper(exports::cuMulticastAddDevice as *const ()),
    Wrapper(exports::cuMulticastBindAddr as *const ()),
    Wrapper(exports::cuMulticastBindAddr_v2 as *const ()),
    Wrapper(exports::cuMulticastBindMem as *const ()),
    Wrapper(exports::cuMulticastBindMem_v2 as *const ()),
    Wrapper(exports::cuMulticastCreate as *const ()),
    Wrapper(exports::cuMulticastGetGranularity as *const ()),
    Wrapper(exports::cuMulticastUnbind as *const ()),
    Wrapper(exports::cuOccupancyAvailableDynamicSMemPerBlock as *const ()),
    Wrapper(exports::cuOccupancyMaxActiveBlocksPerMultiprocessor as *const ()),
    Wrapper(exports::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags as *const ()),
    Wrapper(exports::cuOccupancyMaxActiveClusters as *const ()),
    Wrapper(exports::cuOccupancyMaxPotentialBlockSize as *const ()),
    Wrapper(exports::cuOccupancyMaxPotentialBlockSizeWithFlags as *const ()),
    Wrapper(exports::cuOccupancyMaxPotentialClusterSize as *const ()),
    Wrapper(exports::cuParamSetSize as *const ()),
    Wrapper(exports::cuParamSetTexRef as *const ()),
    Wrapper(exports::cuParamSetf as *const ()),
    Wrapper(exports::cuParamSeti as *const ()),
    Wrapper(exports::cuParamSetv as *const ()),
    Wrapper(exports::cuPointerGetAttribute as *const ()),
    Wrapper(exports::cuPointerGetAttributes as *const ()),
    Wrapper(exports::cuPointerSetAttribute as *const ()),
    Wrapper(exports::cuSignalExternalSemaphoresAsync as *const ()),
    Wrapper(exports::cuSignalExternalSemaphoresAsync_ptsz as *const ()),
    Wrapper(exports::cuStreamAddCallback as *const ()),
    Wrapper(exports::cuStreamAddCallback_ptsz as *const ()),
    Wrapper(exports::cuStreamAttachMemAsync as *const ()),
    Wrapper(exports::cuStreamAttachMemAsync_ptsz as *const ()),
    Wrapper(exports::cuStreamBatchMemOp as *const ()),
    Wrapper(exports::cuStreamBatchMemOp_ptsz as *const ()),
    Wrapper(exports::cuStreamBatchMemOp_v2 as *const ()),
    Wrapper(exports::cuStreamBatchMemOp_v2_ptsz as *const ()),
    Wrapper(exports::cuStreamBeginCapture as *const ()),
    Wrapper(exports::cuStreamBeginCaptureToCig as *const ()),
    Wrapper(exports::cuStreamBeginCaptureToCig_ptsz as *const ()),
    Wrapper(exports::cuStreamBeginCaptureToGraph as *const ()),
    Wrapper(exports::cuStreamBeginCaptureToGraph_ptsz as *const ()),
    Wrapper(exports::cuStreamBeginCapture_ptsz as *const ()),
    Wrapper(exports::cuStreamBeginCapture_v2 as *const ()),
    Wrapper(exports::cuStreamBeginCapture_v2_ptsz as *const ()),
    Wrapper(exports::cuStreamBeginRecaptureToGraph as *const ()),
    Wrapper(exports::cuStreamBeginRecaptureToGraph_ptsz as *const ()),
    Wrapper(exports::cuStreamCopyAttributes as *const ()),
    Wrapper(exports::cuStreamCopyAttributes_ptsz as *const ()),
    Wrapper(exports::cuStreamCreate as *const ()),
    Wrapper(exports::cuStreamCreateWithPriority as *const ()),
    Wrapper(exports::cuStreamDestroy as *const ()),
    Wrapper(exports::cuStreamDestroy_v2 as *const ()),
    Wrapper(exports::cuStreamEndCapture as *const ()),
    Wrapper(exports::cuStreamEndCaptureToCig as *const ()),
    Wrapper(exports::cuStreamEndCaptureToCig_ptsz as *const ()),
    Wrapper(exports::cuStreamEndCapture_ptsz as *const ()),
    Wrapper(exports::cuStreamGetAttribute as *const ()),
    Wrapper(exports::cuStreamGetAttribute_ptsz as *const ()),
    Wrapper(exports::cuStreamGetCaptureInfo as *const ()),
    Wrapper(exports::cuStreamGetCaptureInfo_ptsz as *const ()),
    Wrapper(exports::cuStreamGetCaptureInfo_v2 as *const ()),
    Wrapper(exports::cuStreamGetCaptureInfo_v2_ptsz as *const ()),
    Wrapper(exports::cuStreamGetCaptureInfo_v3 as *const ()),
    Wrapper(exports::cuStreamGetCaptureInfo_v3_ptsz as *const ()),
    Wrapper(exports::cuStreamGetCtx as *const ()),
    Wrapper(exports::cuStreamGetCtx_ptsz as *const ()),
    Wrapper(exports::cuStreamGetCtx_v2 as *const ()),
    Wrapper(exports::cuStreamGetCtx_v2_ptsz as *const ()),
    Wrapper(exports::cuStreamGetDevResource as *const ()),
    Wrapper(exports::cuStreamGetDevResource_ptsz as *const ()),
    Wrapper(exports::cuStreamGetDevice as *const ()),
    Wrapper(exports::cuStreamGetDevice_ptsz as *const ()),
    Wrapper(exports::cuStreamGetFlags as *const ()),
    Wrapper(exports::cuStreamGetFlags_ptsz as *const ()),
    Wrapper(exports::cuStreamGetGreenCtx as *const ()),
    Wrapper(exports::cuStreamGetId as *const ()),
    Wrapper(exports::cuStreamGetId_ptsz as *const ()),
    Wrapper(exports::cuStreamGetPriority as *const ()),
    Wrapper(exports::cuStreamGetPriority_ptsz as *const ()),
    Wrapper(exports::cuStreamIsCapturing as *const ()),
    Wrapper(exports::cuStreamIsCapturing_ptsz as *const ()),
    Wrapper(exports::cuStreamQuery as *const ()),
    Wrapper(exports::cuStreamQuery_ptsz as *const ()),
    Wrapper(exports::cuStreamSetAttribute as *const ()),
    Wrapper(exports::cuStreamSetAttribute_ptsz as *const ()),
    Wrapper(exports::cuStreamSynchronize as *const ()),
    Wrapper(exports::cuStreamSynchronize_ptsz as *const ()),
    Wrapper(exports::cuStreamUpdateCaptureDependencies as *const ()),
    Wrapper(exports::cuStreamUpdateCaptureDependencies_ptsz as *const ()),
    Wrapper(exports::cuStreamUpdateCaptureDependencies_v2 as *const ()),
    Wrapper(exports::cuStreamUpdateCaptureDependencies_v2_ptsz as *const ()),
    Wrapper(exports::cuStreamWaitEvent as *const ()),
    Wrapper(exports::cuStreamWaitEvent_ptsz as *const ()),
    Wrapper(exports::cuStreamWaitValue32 as *const ()),
    Wrapper(exports::cuStreamWaitValue32_ptsz as *const ()),
    Wrapper(exports::cuStreamWaitValue32_v2 as *const ()),
    Wrapper(exports::cuStreamWaitValue32_v2_ptsz as *const ()),
    Wrapper(exports::cuStreamWaitValue64 as *const ()),
    Wrapper(exports::cuStreamWaitValue64_ptsz as *const ()),
    Wrapper(exports::cuStreamWaitValue64_v2 as *const ()),
    Wrapper(exports::cuStreamWaitValue64_v2_ptsz as *const ()),
    Wrapper(exports::cuStreamWriteValue32 as *const ()),
    Wrapper(exports::cuStreamWriteValue32_ptsz as *const ()),
    Wrapper(exports::cuStreamWriteValue32_v2 as *const ()),
    Wrapper(exports::cuStreamWriteValue32_v2_ptsz as *const ()),
    Wrapper(exports::cuStreamWriteValue64 as *const ()),
    Wrapper(exports::cuStreamWriteValue64_ptsz as *const ()),
    Wrapper(exports::cuStreamWriteValue64_v2 as *const ()),
    Wrapper(exports::cuStreamWriteValue64_v2_ptsz as *const ()),
    Wrapper(exports::cuSurfObjectCreate as *const ()),
    Wrapper(exports::cuSurfObjectDestroy as *const ()),
    Wrapper(exports::cuSurfObjectGetResourceDesc as *const ()),
    Wrapper(exports::cuSurfRefGetArray as *const ()),
    Wrapper(exports::cuSurfRefSetArray as *const ()),
    Wrapper(exports::cuTensorMapEncodeIm2col as *const ()),
    Wrapper(exports::cuTensorMapEncodeIm2colWide as *const ()),
    Wrapper(exports::cuTensorMapEncodeTiled as *const ()),
    Wrapper(exports::cuTensorMapReplaceAddress as *const ()),
    Wrapper(exports::cuTensorMapSetAllocationClass as *const ()),
    Wrapper(exports::cuTexObjectCreate as *const ()),
    Wrapper(exports::cuTexObjectDestroy as *const ()),
    Wrapper(exports::cuTexObjectGetResourceDesc as *const ()),
    Wrapper(exports::cuTexObjectGetResourceViewDesc as *const ()),
    Wrapper(exports::cuTexObjectGetTextureDesc as *const ()),
    Wrapper(exports::cuTexRefCreate as *const ()),
    Wrapper(exports::cuTexRefDestroy as *const ()),
    Wrapper(exports::cuTexRefGetAddress as *const ()),
    Wrapper(exports::cuTexRefGetAddressMode as *const ()),
    Wrapper(exports::cuTexRefGetAddress_v2 as *const ()),
    Wrapper(exports::cuTexRefGetArray as *const ()),
    Wrapper(exports::cuTexRefGetBorderColor as *const ()),
    Wrapper(exports::cuTexRefGetFilterMode as *const ()),
    Wrapper(exports::cuTexRefGetFlags as *const ()),
    Wrapper(exports::cuTexRefGetFormat as *const ()),
    Wrapper(exports::cuTexRefGetMaxAnisotropy as *const ()),
    Wrapper(exports::cuTexRefGetMipmapFilterMode as *const ()),
    Wrapper(exports::cuTexRefGetMipmapLevelBias as *const ()),
    Wrapper(exports::cuTexRefGetMipmapLevelClamp as *const ()),
    Wrapper(exports::cuTexRefGetMipmappedArray as *const ()),
    Wrapper(exports::cuTexRefSetAddress as *const ()),
    Wrapper(exports::cuTexRefSetAddress2D as *const ()),
    Wrapper(exports::cuTexRefSetAddress2D_v2 as *const ()),
    Wrapper(exports::cuTexRefSetAddress2D_v3 as *const ()),
    Wrapper(exports::cuTexRefSetAddressMode as *const ()),
    Wrapper(exports::cuTexRefSetAddress_v2 as *const ()),
    Wrapper(exports::cuTexRefSetArray as *const ()),
    Wrapper(exports::cuTexRefSetBorderColor as *const ()),
    Wrapper(exports::cuTexRefSetFilterMode as *const ()),
    Wrapper(exports::cuTexRefSetFlags as *const ()),
    Wrapper(exports::cuTexRefSetFormat as *const ()),
    Wrapper(exports::cuTexRefSetMaxAnisotropy as *const ()),
    Wrapper(exports::cuTexRefSetMipmapFilterMode as *const ()),
    Wrapper(exports::cuTexRefSetMipmapLevelBias as *const ()),
    Wrapper(exports::cuTexRefSetMipmapLevelClamp as *const ()),
    Wrapper(exports::cuTexRefSetMipmappedArray as *const ()),
    Wrapper(exports::cuThreadExchangeStreamCaptureMode as *const ()),
    Wrapper(exports::cuUserObjectCreate as *const ()),
    Wrapper(exports::cuUserObjectRelease as *const ()),
    Wrapper(exports::cuUserObjectRetain as *const ()),
    Wrapper(exports::cuWaitExternalSemaphoresAsync as *const ()),
    Wrapper(exports::cuWaitExternalSemaphoresAsync_ptsz as *const ()),
];

/// Names without version and stream suffix of what has a wrapper written by hand, which a newer version would need as well, sorted.
#[rustfmt::skip]
pub static TRACKED: [&str; 79] = [
    "cuArray3DCreate",
    "cuArrayCreate",
    "cuArrayDestroy",
    "cuCtxAttach",
    "cuCtxCreate",
    "cuCtxDestroy",
    "cuCtxDetach",
    "cuCtxDisablePeerAccess",
    "cuCtxEnablePeerAccess",
    "cuCtxFromGreenCtx",
    "cuDestroyExternalMemory",
    "cuDestroyExternalSemaphore",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxReset",
    "cuDevicePrimaryCtxRetain",
    "cuEventCreate",
    "cuEventDestroy",
    "cuEventRecord",
    "cuEventRecordWithFlags",
    "cuGetExportTable",
    "cuGetProcAddress",
    "cuGreenCtxDestroy",
    "cuImportExternalMemory",
    "cuImportExternalSemaphore",
    "cuInit",
    "cuIpcCloseMemHandle",
    "cuIpcGetEventHandle",
    "cuIpcGetMemHandle",
    "cuIpcOpenEventHandle",
    "cuIpcOpenMemHandle",
    "cuLibraryGetManaged",
    "cuLogicalEndpointBindMem",
    "cuLogicalEndpointCreate",
    "cuLogicalEndpointDestroy",
    "cuLogicalEndpointImport",
    "cuMemAddressFree",
    "cuMemAddressReserve",
    "cuMemAlloc",
    "cuMemAllocAsync",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocManaged",
    "cuMemAllocPitch",
    "cuMemCreate",
    "cuMemExportToShareableHandle",
    "cuMemFree",
    "cuMemFreeHost",
    "cuMemGetAddressRange",
    "cuMemGetAllocationPropertiesFromHandle",
    "cuMemGetHandleForAddressRange",
    "cuMemHostAlloc",
    "cuMemHostGetFlags",
    "cuMemImportFromShareableHandle",
    "cuMemMap",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolExportPointer",
    "cuMemPoolExportToShareableHandle",
    "cuMemPoolImportFromShareableHandle",
    "cuMemPoolImportPointer",
    "cuMemRelease",
    "cuMemRetainAllocationHandle",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuMipmappedArrayCreate",
    "cuMipmappedArrayDestroy",
    "cuMulticastAddDevice",
    "cuMulticastBindAddr",
    "cuMulticastBindMem",
    "cuMulticastCreate",
    "cuMulticastUnbind",
    "cuPointerGetAttribute",
    "cuPointerGetAttributes",
    "cuStreamBeginCapture",
    "cuStreamBeginCaptureToCig",
    "cuStreamBeginCaptureToGraph",
    "cuStreamBeginRecaptureToGraph",
    "cuStreamDestroy",
    "cuStreamEndCapture",
    "cuStreamEndCaptureToCig",
];

/// Names without version and stream suffix of what only passes the gate, sorted.
#[rustfmt::skip]
pub static HELD: [&str; 406] = [
    "cuArray3DGetDescriptor",
    "cuArrayGetDescriptor",
    "cuArrayGetMemoryRequirements",
    "cuArrayGetPlane",
    "cuArrayGetSparseProperties",
    "cuCheckpointOperationComplete",
    "cuCheckpointProcessCheckpoint",
    "cuCheckpointProcessGetRestoreThreadId",
    "cuCheckpointProcessGetState",
    "cuCheckpointProcessLock",
    "cuCheckpointProcessRestore",
    "cuCheckpointProcessUnlock",
    "cuCoredumpDeregisterCompleteCallback",
    "cuCoredumpDeregisterStartCallback",
    "cuCoredumpGetAttribute",
    "cuCoredumpGetAttributeGlobal",
    "cuCoredumpRegisterCompleteCallback",
    "cuCoredumpRegisterStartCallback",
    "cuCoredumpSetAttribute",
    "cuCoredumpSetAttributeGlobal",
    "cuCtxGetApiVersion",
    "cuCtxGetCacheConfig",
    "cuCtxGetCurrent",
    "cuCtxGetDevResource",
    "cuCtxGetDevice",
    "cuCtxGetExecAffinity",
    "cuCtxGetFlags",
    "cuCtxGetId",
    "cuCtxGetLimit",
    "cuCtxGetSharedMemConfig",
    "cuCtxGetStreamPriorityRange",
    "cuCtxPopCurrent",
    "cuCtxPushCurrent",
    "cuCtxRecordEvent",
    "cuCtxResetPersistingL2Cache",
    "cuCtxSetCacheConfig",
    "cuCtxSetCurrent",
    "cuCtxSetFlags",
    "cuCtxSetLimit",
    "cuCtxSetSharedMemConfig",
    "cuCtxSynchronize",
    "cuCtxWaitEvent",
    "cuDevResourceGenerateDesc",
    "cuDevSmResourceSplit",
    "cuDevSmResourceSplitByCount",
    "cuDeviceCanAccessPeer",
    "cuDeviceComputeCapability",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetByPCIBusId",
    "cuDeviceGetCliqueCount",
    "cuDeviceGetCliqueInfo",
    "cuDeviceGetCount",
    "cuDeviceGetDefaultMemPool",
    "cuDeviceGetDevResource",
    "cuDeviceGetExecAffinitySupport",
    "cuDeviceGetFabricClusterUuid",
    "cuDeviceGetGraphMemAttribute",
    "cuDeviceGetHostAtomicCapabilities",
    "cuDeviceGetLuid",
    "cuDeviceGetMemPool",
    "cuDeviceGetName",
    "cuDeviceGetNvSciSyncAttributes",
    "cuDeviceGetP2PAtomicCapabilities",
    "cuDeviceGetP2PAttribute",
    "cuDeviceGetPCIBusId",
    "cuDeviceGetProperties",
    "cuDeviceGetTexture1DLinearMaxWidth",
    "cuDeviceGetUuid",
    "cuDeviceGraphMemTrim",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxSetFlags",
    "cuDeviceRegisterAsyncNotification",
    "cuDeviceSetGraphMemAttribute",
    "cuDeviceSetMemPool",
    "cuDeviceTotalMem",
    "cuDeviceUnregisterAsyncNotification",
    "cuDriverGetVersion",
    "cuEventElapsedTime",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuExternalMemoryGetMappedBuffer",
    "cuExternalMemoryGetMappedMipmappedArray",
    "cuFabricCpyBatchAsync",
    "cuFlushGPUDirectRDMAWrites",
    "cuFuncGetAttribute",
    "cuFuncGetModule",
    "cuFuncGetName",
    "cuFuncGetParamCount",
    "cuFuncGetParamInfo",
    "cuFuncIsLoaded",
    "cuFuncLoad",
    "cuFuncSetAttribute",
    "cuFuncSetBlockShape",
    "cuFuncSetCacheConfig",
    "cuFuncSetSharedMemConfig",
    "cuFuncSetSharedSize",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGraphAddBatchMemOpNode",
    "cuGraphAddChildGraphNode",
    "cuGraphAddDependencies",
    "cuGraphAddEmptyNode",
    "cuGraphAddEventRecordNode",
    "cuGraphAddEventWaitNode",
    "cuGraphAddExternalSemaphoresSignalNode",
    "cuGraphAddExternalSemaphoresWaitNode",
    "cuGraphAddHostNode",
    "cuGraphAddKernelNode",
    "cuGraphAddMemAllocNode",
    "cuGraphAddMemFreeNode",
    "cuGraphAddMemcpyNode",
    "cuGraphAddMemsetNode",
    "cuGraphAddNode",
    "cuGraphBatchMemOpNodeGetParams",
    "cuGraphBatchMemOpNodeSetParams",
    "cuGraphChildGraphNodeGetGraph",
    "cuGraphClone",
    "cuGraphConditionalHandleCreate",
    "cuGraphCreate",
    "cuGraphDebugDotPrint",
    "cuGraphDestroy",
    "cuGraphDestroyNode",
    "cuGraphEventRecordNodeGetEvent",
    "cuGraphEventRecordNodeSetEvent",
    "cuGraphEventWaitNodeGetEvent",
    "cuGraphEventWaitNodeSetEvent",
    "cuGraphExecBatchMemOpNodeSetParams",
    "cuGraphExecChildGraphNodeSetParams",
    "cuGraphExecDestroy",
    "cuGraphExecEventRecordNodeSetEvent",
    "cuGraphExecEventWaitNodeSetEvent",
    "cuGraphExecExternalSemaphoresSignalNodeSetParams",
    "cuGraphExecExternalSemaphoresWaitNodeSetParams",
    "cuGraphExecGetFlags",
    "cuGraphExecGetId",
    "cuGraphExecHostNodeSetParams",
    "cuGraphExecKernelNodeSetParams",
    "cuGraphExecMemcpyNodeSetParams",
    "cuGraphExecMemsetNodeSetParams",
    "cuGraphExecNodeSetParams",
    "cuGraphExecUpdate",
    "cuGraphExternalSemaphoresSignalNodeGetParams",
    "cuGraphExternalSemaphoresSignalNodeSetParams",
    "cuGraphExternalSemaphoresWaitNodeGetParams",
    "cuGraphExternalSemaphoresWaitNodeSetParams",
    "cuGraphGetEdges",
    "cuGraphGetId",
    "cuGraphGetNodes",
    "cuGraphGetRootNodes",
    "cuGraphHostNodeGetParams",
    "cuGraphHostNodeSetParams",
    "cuGraphInstantiate",
    "cuGraphInstantiateWithFlags",
    "cuGraphInstantiateWithParams",
    "cuGraphKernelNodeCopyAttributes",
    "cuGraphKernelNodeGetAttribute",
    "cuGraphKernelNodeGetParams",
    "cuGraphKernelNodeSetAttribute",
    "cuGraphKernelNodeSetParams",
    "cuGraphLaunch",
    "cuGraphMemAllocNodeGetParams",
    "cuGraphMemFreeNodeGetParams",
    "cuGraphMemcpyNodeGetParams",
    "cuGraphMemcpyNodeSetParams",
    "cuGraphMemsetNodeGetParams",
    "cuGraphMemsetNodeSetParams",
    "cuGraphNodeFindInClone",
    "cuGraphNodeGetContainingGraph",
    "cuGraphNodeGetDependencies",
    "cuGraphNodeGetDependentNodes",
    "cuGraphNodeGetEnabled",
    "cuGraphNodeGetLocalId",
    "cuGraphNodeGetParams",
    "cuGraphNodeGetToolsId",
    "cuGraphNodeGetType",
    "cuGraphNodeSetEnabled",
    "cuGraphNodeSetParams",
    "cuGraphReleaseUserObject",
    "cuGraphRemoveDependencies",
    "cuGraphRetainUserObject",
    "cuGraphUpload",
    "cuGraphicsMapResources",
    "cuGraphicsResourceGetMappedMipmappedArray",
    "cuGraphicsResourceGetMappedPointer",
    "cuGraphicsResourceSetMapFlags",
    "cuGraphicsSubResourceGetMappedArray",
    "cuGraphicsUnmapResources",
    "cuGraphicsUnregisterResource",
    "cuGreenCtxCreate",
    "cuGreenCtxGetDevResource",
    "cuGreenCtxGetId",
    "cuGreenCtxRecordEvent",
    "cuGreenCtxStreamCreate",
    "cuGreenCtxWaitEvent",
    "cuKernelGetAttribute",
    "cuKernelGetFunction",
    "cuKernelGetLibrary",
    "cuKernelGetName",
    "cuKernelGetParamCount",
    "cuKernelGetParamInfo",
    "cuKernelSetAttribute",
    "cuKernelSetCacheConfig",
    "cuLaunch",
    "cuLaunchCooperativeKernel",
    "cuLaunchCooperativeKernelMultiDevice",
    "cuLaunchGrid",
    "cuLaunchGridAsync",
    "cuLaunchHostFunc",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuLibraryEnumerateKernels",
    "cuLibraryGetGlobal",
    "cuLibraryGetKernel",
    "cuLibraryGetKernelCount",
    "cuLibraryGetModule",
    "cuLibraryGetUnifiedFunction",
    "cuLibraryLoadData",
    "cuLibraryLoadFromFile",
    "cuLibraryUnload",
    "cuLinkAddData",
    "cuLinkAddFile",
    "cuLinkComplete",
    "cuLinkCreate",
    "cuLinkDestroy",
    "cuLogicalEndpointAddDevice",
    "cuLogicalEndpointBindAddr",
    "cuLogicalEndpointExport",
    "cuLogicalEndpointGetLimits",
    "cuLogicalEndpointIdRelease",
    "cuLogicalEndpointIdReserve",
    "cuLogicalEndpointQuery",
    "cuLogicalEndpointUnbind",
    "cuLogsCurrent",
    "cuLogsDumpToFile",
    "cuLogsDumpToMemory",
    "cuLogsRegisterCallback",
    "cuLogsUnregisterCallback",
    "cuMemAdvise",
    "cuMemAllocHost",
    "cuMemBatchDecompressAsync",
    "cuMemDiscardAndPrefetchBatchAsync",
    "cuMemDiscardBatchAsync",
    "cuMemFreeAsync",
    "cuMemGetAccess",
    "cuMemGetAllocationGranularity",
    "cuMemGetDefaultMemPool",
    "cuMemGetInfo",
    "cuMemGetLocationInfo",
    "cuMemGetMemPool",
    "cuMemHostGetDevicePointer",
    "cuMemHostRegister",
    "cuMemHostUnregister",
    "cuMemMapArrayAsync",
    "cuMemPoolGetAccess",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAccess",
    "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo",
    "cuMemPrefetchAsync",
    "cuMemPrefetchBatchAsync",
    "cuMemRangeGetAttribute",
    "cuMemRangeGetAttributes",
    "cuMemSetMemPool",
    "cuMemcpy",
    "cuMemcpy2D",
    "cuMemcpy2DAsync",
    "cuMemcpy2DUnaligned",
    "cuMemcpy3D",
    "cuMemcpy3DAsync",
    "cuMemcpy3DBatchAsync",
    "cuMemcpy3DPeer",
    "cuMemcpy3DPeerAsync",
    "cuMemcpy3DWithAttributesAsync",
    "cuMemcpyAsync",
    "cuMemcpyAtoA",
    "cuMemcpyAtoD",
    "cuMemcpyAtoH",
    "cuMemcpyAtoHAsync",
    "cuMemcpyBatchAsync",
    "cuMemcpyDtoA",
    "cuMemcpyDtoD",
    "cuMemcpyDtoDAsync",
    "cuMemcpyDtoH",
    "cuMemcpyDtoHAsync",
    "cuMemcpyHtoA",
    "cuMemcpyHtoAAsync",
    "cuMemcpyHtoD",
    "cuMemcpyHtoDAsync",
    "cuMemcpyPeer",
    "cuMemcpyPeerAsync",
    "cuMemcpyWithAttributesAsync",
    "cuMemsetD16",
    "cuMemsetD16Async",
    "cuMemsetD2D16",
    "cuMemsetD2D16Async",
    "cuMemsetD2D32",
    "cuMemsetD2D32Async",
    "cuMemsetD2D8",
    "cuMemsetD2D8Async",
    "cuMemsetD32",
    "cuMemsetD32Async",
    "cuMemsetD8",
    "cuMemsetD8Async",
    "cuMipmappedArrayGetLevel",
    "cuMipmappedArrayGetMemoryRequirements",
    "cuMipmappedArrayGetSparseProperties",
    "cuModuleEnumerateFunctions",
    "cuModuleGetFunction",
    "cuModuleGetFunctionCount",
    "cuModuleGetGlobal",
    "cuModuleGetLoadingMode",
    "cuModuleGetSurfRef",
    "cuModuleGetTexRef",
    "cuModuleLoad",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleLoadFatBinary",
    "cuModuleUnload",
    "cuMulticastGetGranularity",
    "cuOccupancyAvailableDynamicSMemPerBlock",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "cuOccupancyMaxActiveClusters",
    "cuOccupancyMaxPotentialBlockSize",
    "cuOccupancyMaxPotentialBlockSizeWithFlags",
    "cuOccupancyMaxPotentialClusterSize",
    "cuParamSetSize",
    "cuParamSetTexRef",
    "cuParamSetf",
    "cuParamSeti",
    "cuParamSetv",
    "cuPointerSetAttribute",
    "cuSignalExternalSemaphoresAsync",
    "cuStreamAddCallback",
    "cuStreamAttachMemAsync",
    "cuStreamBatchMemOp",
    "cuStreamCopyAttributes",
    "cuStreamCreate",
    "cuStreamCreateWithPriority",
    "cuStreamGetAttribute",
    "cuStreamGetCaptureInfo",
    "cuStreamGetCtx",
    "cuStreamGetDevResource",
    "cuStreamGetDevice",
    "cuStreamGetFlags",
    "cuStreamGetGreenCtx",
    "cuStreamGetId",
    "cuStreamGetPriority",
    "cuStreamIsCapturing",
    "cuStreamQuery",
    "cuStreamSetAttribute",
    "cuStreamSynchronize",
    "cuStreamUpdateCaptureDependencies",
    "cuStreamWaitEvent",
    "cuStreamWaitValue32",
    "cuStreamWaitValue64",
    "cuStreamWriteValue32",
    "cuStreamWriteValue64",
    "cuSurfObjectCreate",
    "cuSurfObjectDestroy",
    "cuSurfObjectGetResourceDesc",
    "cuSurfRefGetArray",
    "cuSurfRefSetArray",
    "cuTensorMapEncodeIm2col",
    "cuTensorMapEncodeIm2colWide",
    "cuTensorMapEncodeTiled",
    "cuTensorMapReplaceAddress",
    "cuTensorMapSetAllocationClass",
    "cuTexObjectCreate",
    "cuTexObjectDestroy",
    "cuTexObjectGetResourceDesc",
    "cuTexObjectGetResourceViewDesc",
    "cuTexObjectGetTextureDesc",
    "cuTexRefCreate",
    "cuTexRefDestroy",
    "cuTexRefGetAddress",
    "cuTexRefGetAddressMode",
    "cuTexRefGetArray",
    "cuTexRefGetBorderColor",
    "cuTexRefGetFilterMode",
    "cuTexRefGetFlags",
    "cuTexRefGetFormat",
    "cuTexRefGetMaxAnisotropy",
    "cuTexRefGetMipmapFilterMode",
    "cuTexRefGetMipmapLevelBias",
    "cuTexRefGetMipmapLevelClamp",
    "cuTexRefGetMipmappedArray",
    "cuTexRefSetAddress",
    "cuTexRefSetAddress2D",
    "cuTexRefSetAddressMode",
    "cuTexRefSetArray",
    "cuTexRefSetBorderColor",
    "cuTexRefSetFilterMode",
    "cuTexRefSetFlags",
    "cuTexRefSetFormat",
    "cuTexRefSetMaxAnisotropy",
    "cuTexRefSetMipmapFilterMode",
    "cuTexRefSetMipmapLevelBias",
    "cuTexRefSetMipmapLevelClamp",
    "cuTexRefSetMipmappedArray",
    "cuThreadExchangeStreamCaptureMode",
    "cuUserObjectCreate",
    "cuUserObjectRelease",
    "cuUserObjectRetain",
    "cuWaitExternalSemaphoresAsync",
];

/// Beginnings of names that are in no cuda.h known here and only ask.
#[rustfmt::skip]
pub static HARMLESS: [&str; 21] = [
    "cuArrayGet",
    "cuCheckpoint",
    "cuCoredump",
    "cuCtxGet",
    "cuDevResource",
    "cuDevSmResource",
    "cuDeviceGet",
    "cuEventGet",
    "cuFuncGet",
    "cuGetError",
    "cuGraphGet",
    "cuGraphNodeGet",
    "cuGreenCtxGet",
    "cuKernelGet",
    "cuLibraryGet",
    "cuLogs",
    "cuMemPoolGet",
    "cuModuleGet",
    "cuOccupancy",
    "cuProfiler",
    "cuStreamGet",
];

/// Words in names that are in no cuda.h known here and that enqueue, allocate or share.
#[rustfmt::skip]
pub static REFUSED: [&str; 29] = [
    "Alloc",
    "Async",
    "BatchMemOp",
    "Copy",
    "Cpy",
    "CtxCreate",
    "D3D",
    "EGL",
    "Endpoint",
    "Enqueue",
    "Export",
    "Fabric",
    "GL",
    "Graphics",
    "Import",
    "Ipc",
    "Launch",
    "MemCreate",
    "MemMap",
    "Memcpy",
    "Memset",
    "Multicast",
    "NvSci",
    "PoolCreate",
    "Prefetch",
    "Reserve",
    "Signal",
    "Submit",
    "VDPAU",
];

/// The driver's own functions, typed. Each is undefined behaviour exactly where the driver's is;
/// a function that this driver lacks answers `CUDA_ERROR_NOT_SUPPORTED`.
#[rustfmt::skip]
#[allow(non_snake_case, missing_docs, dead_code, clippy::missing_safety_doc, clippy::too_many_arguments)]
pub mod real {
    use super::*;
    pub unsafe fn cuCtxGetCurrent(pctx: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_CURRENT) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle) -> u32>(address)(pctx) }
    }
    pub unsafe fn cuCtxGetDevice(device: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_DEVICE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32) -> u32>(address)(device) }
    }
    pub unsafe fn cuCtxGetLimit(pvalue: *mut usize, limit: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_LIMIT) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, u32) -> u32>(address)(pvalue, limit) }
    }
    pub unsafe fn cuCtxPopCurrent_v2(pctx: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_POP_CURRENT_V2) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle) -> u32>(address)(pctx) }
    }
    pub unsafe fn cuCtxPushCurrent_v2(ctx: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_PUSH_CURRENT_V2) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(ctx) }
    }
    pub unsafe fn cuCtxSetLimit(limit: u32, value: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_SET_LIMIT) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, usize) -> u32>(address)(limit, value) }
    }
    pub unsafe fn cuCtxSynchronize() -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_SYNCHRONIZE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn() -> u32>(address)() }
    }
    pub unsafe fn cuDeviceGet(device: *mut i32, ordinal: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, i32) -> u32>(address)(device, ordinal) }
    }
    pub unsafe fn cuDeviceGetAttribute(pi: *mut i32, attrib: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_ATTRIBUTE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, u32, i32) -> u32>(address)(pi, attrib, dev) }
    }
    pub unsafe fn cuDeviceGetCount(count: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_COUNT) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32) -> u32>(address)(count) }
    }
    pub unsafe fn cuDeviceGetDefaultMemPool(pool_out: *mut Handle, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_DEFAULT_MEM_POOL) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, i32) -> u32>(address)(pool_out, dev) }
    }
    pub unsafe fn cuDeviceGetGraphMemAttribute(device: i32, attr: u32, value: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_GRAPH_MEM_ATTRIBUTE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, u32, *mut c_void) -> u32>(address)(device, attr, value) }
    }
    pub unsafe fn cuDeviceGetName(name: *mut std::ffi::c_char, len: i32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_NAME) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut std::ffi::c_char, i32, i32) -> u32>(address)(name, len, dev) }
    }
    pub unsafe fn cuDeviceGetUuid(uuid: *mut c_void, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_UUID) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, i32) -> u32>(address)(uuid, dev) }
    }
    pub unsafe fn cuDeviceGetUuid_v2(uuid: *mut c_void, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_UUID_V2) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, i32) -> u32>(address)(uuid, dev) }
    }
    pub unsafe fn cuDevicePrimaryCtxGetState(dev: i32, flags: *mut u32, active: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_PRIMARY_CTX_GET_STATE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, *mut u32, *mut i32) -> u32>(address)(dev, flags, active) }
    }
    pub unsafe fn cuDevicePrimaryCtxRelease_v2(dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_PRIMARY_CTX_RELEASE_V2) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32) -> u32>(address)(dev) }
    }
    pub unsafe fn cuDevicePrimaryCtxRetain(pctx: *mut Handle, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_PRIMARY_CTX_RETAIN) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, i32) -> u32>(address)(pctx, dev) }
    }
    pub unsafe fn cuDeviceTotalMem_v2(bytes: *mut usize, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_TOTAL_MEM_V2) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, i32) -> u32>(address)(bytes, dev) }
    }
    pub unsafe fn cuEventCreate(ph_event: *mut Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_EVENT_CREATE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, u32) -> u32>(address)(ph_event, flags) }
    }
    pub unsafe fn cuEventSynchronize(h_event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_EVENT_SYNCHRONIZE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_event) }
    }
    pub unsafe fn cuMemAddressFree(ptr: u64, size: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_ADDRESS_FREE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize) -> u32>(address)(ptr, size) }
    }
    pub unsafe fn cuMemAddressReserve(ptr: *mut u64, size: usize, alignment: usize, addr: u64, flags: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_ADDRESS_RESERVE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, usize, usize, u64, u64) -> u32>(address)(ptr, size, alignment, addr, flags) }
    }
    pub unsafe fn cuMemCreate(handle: *mut u64, size: usize, prop: *const c_void, flags: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_CREATE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, usize, *const c_void, u64) -> u32>(address)(handle, size, prop, flags) }
    }
    pub unsafe fn cuMemExportToShareableHandle(shareable_handle: *mut c_void, handle: u64, handle_type: u32, flags: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_EXPORT_TO_SHAREABLE_HANDLE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, u32, u64) -> u32>(address)(shareable_handle, handle, handle_type, flags) }
    }
    pub unsafe fn cuMemGetAllocationGranularity(granularity: *mut usize, prop: *const c_void, option: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_GET_ALLOCATION_GRANULARITY) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, *const c_void, u32) -> u32>(address)(granularity, prop, option) }
    }
    pub unsafe fn cuMemImportFromShareableHandle(handle: *mut u64, os_handle: *mut c_void, sh_handle_type: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_IMPORT_FROM_SHAREABLE_HANDLE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut c_void, u32) -> u32>(address)(handle, os_handle, sh_handle_type) }
    }
    pub unsafe fn cuMemMap(ptr: u64, size: usize, offset: usize, handle: u64, flags: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_MAP) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, usize, u64, u64) -> u32>(address)(ptr, size, offset, handle, flags) }
    }
    pub unsafe fn cuMemPoolGetAttribute(pool: Handle, attr: u32, value: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_POOL_GET_ATTRIBUTE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void) -> u32>(address)(pool, attr, value) }
    }
    pub unsafe fn cuMemRelease(handle: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_RELEASE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64) -> u32>(address)(handle) }
    }
    pub unsafe fn cuMemSetAccess(ptr: u64, size: usize, desc: *const c_void, count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_SET_ACCESS) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, *const c_void, usize) -> u32>(address)(ptr, size, desc, count) }
    }
    pub unsafe fn cuMemUnmap(ptr: u64, size: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_UNMAP) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize) -> u32>(address)(ptr, size) }
    }
    pub unsafe fn cuMulticastAddDevice(mc_handle: u64, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_MULTICAST_ADD_DEVICE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, i32) -> u32>(address)(mc_handle, dev) }
    }
    pub unsafe fn cuMulticastBindAddr(mc_handle: u64, mc_offset: usize, memptr: u64, size: usize, flags: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_MULTICAST_BIND_ADDR) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u64, usize, u64) -> u32>(address)(mc_handle, mc_offset, memptr, size, flags) }
    }
    pub unsafe fn cuMulticastBindAddr_v2(mc_handle: u64, dev: i32, mc_offset: usize, memptr: u64, size: usize, flags: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_MULTICAST_BIND_ADDR_V2) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, i32, usize, u64, usize, u64) -> u32>(address)(mc_handle, dev, mc_offset, memptr, size, flags) }
    }
    pub unsafe fn cuMulticastBindMem(mc_handle: u64, mc_offset: usize, mem_handle: u64, mem_offset: usize, size: usize, flags: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_MULTICAST_BIND_MEM) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u64, usize, usize, u64) -> u32>(address)(mc_handle, mc_offset, mem_handle, mem_offset, size, flags) }
    }
    pub unsafe fn cuMulticastBindMem_v2(mc_handle: u64, dev: i32, mc_offset: usize, mem_handle: u64, mem_offset: usize, size: usize, flags: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_MULTICAST_BIND_MEM_V2) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, i32, usize, u64, usize, usize, u64) -> u32>(address)(mc_handle, dev, mc_offset, mem_handle, mem_offset, size, flags) }
    }
    pub unsafe fn cuMulticastCreate(mc_handle: *mut u64, prop: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MULTICAST_CREATE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *const c_void) -> u32>(address)(mc_handle, prop) }
    }
    pub unsafe fn cuMulticastUnbind(mc_handle: u64, dev: i32, mc_offset: usize, size: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MULTICAST_UNBIND) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, i32, usize, usize) -> u32>(address)(mc_handle, dev, mc_offset, size) }
    }
    pub unsafe fn cuStreamGetCaptureInfo_v2(h_stream: Handle, capture_status_out: *mut u32, id_out: *mut u64, graph_out: *mut Handle, dependencies_out: *mut *const Handle, num_dependencies_out: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CAPTURE_INFO_V2) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32, *mut u64, *mut Handle, *mut *const Handle, *mut usize) -> u32>(address)(h_stream, capture_status_out, id_out, graph_out, dependencies_out, num_dependencies_out) }
    }
    pub unsafe fn cuStreamIsCapturing(h_stream: Handle, capture_status: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_IS_CAPTURING) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32) -> u32>(address)(h_stream, capture_status) }
    }
    pub unsafe fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_THREAD_EXCHANGE_STREAM_CAPTURE_MODE) else { return driver::missing() };
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32) -> u32>(address)(mode) }
    }
}

/// The driver's own functions behind tracked entry points: the number tells which variant.
#[rustfmt::skip]
#[allow(non_snake_case, missing_docs, dead_code, clippy::missing_safety_doc, clippy::too_many_arguments)]
pub mod tracked {
    use super::*;
    pub unsafe fn cuArray3DCreate_v2(entry: Entry, p_handle: *mut Handle, p_allocate_array: *const c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(p_handle, p_allocate_array) }
    }
    pub unsafe fn cuArrayCreate_v2(entry: Entry, p_handle: *mut Handle, p_allocate_array: *const c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(p_handle, p_allocate_array) }
    }
    pub unsafe fn cuArrayDestroy(entry: Entry, h_array: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_array) }
    }
    pub unsafe fn cuCtxAttach(entry: Entry, pctx: *mut Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, u32) -> u32>(address)(pctx, flags) }
    }
    pub unsafe fn cuCtxCreate(entry: Entry, pctx: *mut Handle, flags: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, u32, i32) -> u32>(address)(pctx, flags, dev) }
    }
    pub unsafe fn cuCtxCreate_v2(entry: Entry, pctx: *mut Handle, flags: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, u32, i32) -> u32>(address)(pctx, flags, dev) }
    }
    pub unsafe fn cuCtxCreate_v3(entry: Entry, pctx: *mut Handle, params_array: *mut c_void, num_params: i32, flags: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *mut c_void, i32, u32, i32) -> u32>(address)(pctx, params_array, num_params, flags, dev) }
    }
    pub unsafe fn cuCtxCreate_v4(entry: Entry, pctx: *mut Handle, ctx_create_params: *mut c_void, flags: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *mut c_void, u32, i32) -> u32>(address)(pctx, ctx_create_params, flags, dev) }
    }
    pub unsafe fn cuCtxDestroy(entry: Entry, ctx: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(ctx) }
    }
    pub unsafe fn cuCtxDestroy_v2(entry: Entry, ctx: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(ctx) }
    }
    pub unsafe fn cuCtxDetach(entry: Entry, ctx: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(ctx) }
    }
    pub unsafe fn cuCtxDisablePeerAccess(entry: Entry, peer_context: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(peer_context) }
    }
    pub unsafe fn cuCtxEnablePeerAccess(entry: Entry, peer_context: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(peer_context, flags) }
    }
    pub unsafe fn cuCtxFromGreenCtx(entry: Entry, p_context: *mut Handle, h_ctx: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle) -> u32>(address)(p_context, h_ctx) }
    }
    pub unsafe fn cuDestroyExternalMemory(entry: Entry, ext_mem: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(ext_mem) }
    }
    pub unsafe fn cuDestroyExternalSemaphore(entry: Entry, ext_sem: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(ext_sem) }
    }
    pub unsafe fn cuDevicePrimaryCtxRelease(entry: Entry, dev: i32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32) -> u32>(address)(dev) }
    }
    pub unsafe fn cuDevicePrimaryCtxRelease_v2(entry: Entry, dev: i32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32) -> u32>(address)(dev) }
    }
    pub unsafe fn cuDevicePrimaryCtxReset(entry: Entry, dev: i32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32) -> u32>(address)(dev) }
    }
    pub unsafe fn cuDevicePrimaryCtxReset_v2(entry: Entry, dev: i32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32) -> u32>(address)(dev) }
    }
    pub unsafe fn cuDevicePrimaryCtxRetain(entry: Entry, pctx: *mut Handle, dev: i32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, i32) -> u32>(address)(pctx, dev) }
    }
    pub unsafe fn cuEventCreate(entry: Entry, ph_event: *mut Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, u32) -> u32>(address)(ph_event, flags) }
    }
    pub unsafe fn cuEventDestroy(entry: Entry, h_event: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_event) }
    }
    pub unsafe fn cuEventDestroy_v2(entry: Entry, h_event: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_event) }
    }
    pub unsafe fn cuEventRecord(entry: Entry, h_event: Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_event, h_stream) }
    }
    pub unsafe fn cuEventRecordWithFlags(entry: Entry, h_event: Handle, h_stream: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32) -> u32>(address)(h_event, h_stream, flags) }
    }
    pub unsafe fn cuGetExportTable(entry: Entry, pp_export_table: *mut *const c_void, p_export_table_id: *const c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut *const c_void, *const c_void) -> u32>(address)(pp_export_table, p_export_table_id) }
    }
    pub unsafe fn cuGetProcAddress(entry: Entry, symbol: *const std::ffi::c_char, pfn: *mut *mut c_void, cuda_version: i32, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const std::ffi::c_char, *mut *mut c_void, i32, u64) -> u32>(address)(symbol, pfn, cuda_version, flags) }
    }
    pub unsafe fn cuGetProcAddress_v2(entry: Entry, symbol: *const std::ffi::c_char, pfn: *mut *mut c_void, cuda_version: i32, flags: u64, symbol_status: *mut u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const std::ffi::c_char, *mut *mut c_void, i32, u64, *mut u32) -> u32>(address)(symbol, pfn, cuda_version, flags, symbol_status) }
    }
    pub unsafe fn cuGraphAddChildGraphNode(entry: Entry, ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, child_graph: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, Handle) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, child_graph) }
    }
    pub unsafe fn cuGraphAddNode(entry: Entry, ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *mut c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, node_params) }
    }
    pub unsafe fn cuGraphAddNode_v2(entry: Entry, ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, dependency_data: *const c_void, num_dependencies: usize, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, *const c_void, usize, *mut c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, dependency_data, num_dependencies, node_params) }
    }
    pub unsafe fn cuGraphClone(entry: Entry, ph_graph_clone: *mut Handle, original_graph: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle) -> u32>(address)(ph_graph_clone, original_graph) }
    }
    pub unsafe fn cuGraphCreate(entry: Entry, ph_graph: *mut Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, u32) -> u32>(address)(ph_graph, flags) }
    }
    pub unsafe fn cuGraphDestroy(entry: Entry, h_graph: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_graph) }
    }
    pub unsafe fn cuGraphExecDestroy(entry: Entry, h_graph_exec: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_graph_exec) }
    }
    pub unsafe fn cuGraphExecUpdate(entry: Entry, h_graph_exec: Handle, h_graph: Handle, h_error_node_out: *mut Handle, update_result_out: *mut u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut Handle, *mut u32) -> u32>(address)(h_graph_exec, h_graph, h_error_node_out, update_result_out) }
    }
    pub unsafe fn cuGraphExecUpdate_v2(entry: Entry, h_graph_exec: Handle, h_graph: Handle, result_info: *mut c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut c_void) -> u32>(address)(h_graph_exec, h_graph, result_info) }
    }
    pub unsafe fn cuGraphInstantiate(entry: Entry, ph_graph_exec: *mut Handle, h_graph: Handle, ph_error_node: *mut Handle, log_buffer: *mut std::ffi::c_char, buffer_size: usize) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *mut Handle, *mut std::ffi::c_char, usize) -> u32>(address)(ph_graph_exec, h_graph, ph_error_node, log_buffer, buffer_size) }
    }
    pub unsafe fn cuGraphInstantiateWithFlags(entry: Entry, ph_graph_exec: *mut Handle, h_graph: Handle, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, u64) -> u32>(address)(ph_graph_exec, h_graph, flags) }
    }
    pub unsafe fn cuGraphInstantiateWithParams(entry: Entry, ph_graph_exec: *mut Handle, h_graph: Handle, instantiate_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *mut c_void) -> u32>(address)(ph_graph_exec, h_graph, instantiate_params) }
    }
    pub unsafe fn cuGraphInstantiate_v2(entry: Entry, ph_graph_exec: *mut Handle, h_graph: Handle, ph_error_node: *mut Handle, log_buffer: *mut std::ffi::c_char, buffer_size: usize) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *mut Handle, *mut std::ffi::c_char, usize) -> u32>(address)(ph_graph_exec, h_graph, ph_error_node, log_buffer, buffer_size) }
    }
    pub unsafe fn cuGraphLaunch(entry: Entry, h_graph: Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_graph, h_stream) }
    }
    pub unsafe fn cuGreenCtxDestroy(entry: Entry, h_ctx: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_ctx) }
    }
    pub unsafe fn cuImportExternalMemory(entry: Entry, ext_mem_out: *mut Handle, mem_handle_desc: *const c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(ext_mem_out, mem_handle_desc) }
    }
    pub unsafe fn cuImportExternalSemaphore(entry: Entry, ext_sem_out: *mut Handle, sem_handle_desc: *const c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(ext_sem_out, sem_handle_desc) }
    }
    pub unsafe fn cuInit(entry: Entry, flags: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32) -> u32>(address)(flags) }
    }
    pub unsafe fn cuIpcCloseMemHandle(entry: Entry, dptr: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64) -> u32>(address)(dptr) }
    }
    pub unsafe fn cuIpcGetEventHandle(entry: Entry, p_handle: *mut IpcHandle, event: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut IpcHandle, Handle) -> u32>(address)(p_handle, event) }
    }
    pub unsafe fn cuIpcGetMemHandle(entry: Entry, p_handle: *mut IpcHandle, dptr: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut IpcHandle, u64) -> u32>(address)(p_handle, dptr) }
    }
    pub unsafe fn cuIpcOpenEventHandle(entry: Entry, ph_event: *mut Handle, handle: IpcHandle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, IpcHandle) -> u32>(address)(ph_event, handle) }
    }
    pub unsafe fn cuIpcOpenMemHandle(entry: Entry, pdptr: *mut u64, handle: IpcHandle, flags: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, IpcHandle, u32) -> u32>(address)(pdptr, handle, flags) }
    }
    pub unsafe fn cuIpcOpenMemHandle_v2(entry: Entry, pdptr: *mut u64, handle: IpcHandle, flags: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, IpcHandle, u32) -> u32>(address)(pdptr, handle, flags) }
    }
    pub unsafe fn cuLibraryGetManaged(entry: Entry, dptr: *mut u64, bytes: *mut usize, library: Handle, name: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, Handle, *const std::ffi::c_char) -> u32>(address)(dptr, bytes, library, name) }
    }
    pub unsafe fn cuLogicalEndpointBindMem(entry: Entry, le_id: u32, dev: i32, offset: u64, mem_handle: u64, mem_offset: u64, size: u64, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, i32, u64, u64, u64, u64, u64) -> u32>(address)(le_id, dev, offset, mem_handle, mem_offset, size, flags) }
    }
    pub unsafe fn cuLogicalEndpointCreate(entry: Entry, le_id: u32, prop: *const c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *const c_void) -> u32>(address)(le_id, prop) }
    }
    pub unsafe fn cuLogicalEndpointDestroy(entry: Entry, le_id: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32) -> u32>(address)(le_id) }
    }
    pub unsafe fn cuLogicalEndpointImport(entry: Entry, le_id: u32, handle: *const c_void, handle_type: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *const c_void, u32) -> u32>(address)(le_id, handle, handle_type) }
    }
    pub unsafe fn cuMemAddressFree(entry: Entry, ptr: u64, size: usize) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize) -> u32>(address)(ptr, size) }
    }
    pub unsafe fn cuMemAddressReserve(entry: Entry, ptr: *mut u64, size: usize, alignment: usize, addr: u64, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, usize, usize, u64, u64) -> u32>(address)(ptr, size, alignment, addr, flags) }
    }
    pub unsafe fn cuMemAllocAsync(entry: Entry, dptr: *mut u64, bytesize: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, usize, Handle) -> u32>(address)(dptr, bytesize, h_stream) }
    }
    pub unsafe fn cuMemAllocFromPoolAsync(entry: Entry, dptr: *mut u64, bytesize: usize, pool: Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, usize, Handle, Handle) -> u32>(address)(dptr, bytesize, pool, h_stream) }
    }
    pub unsafe fn cuMemAllocManaged(entry: Entry, dptr: *mut u64, bytesize: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, usize, u32) -> u32>(address)(dptr, bytesize, flags) }
    }
    pub unsafe fn cuMemAllocPitch_v2(entry: Entry, dptr: *mut u64, p_pitch: *mut usize, width_in_bytes: usize, height: usize, element_size_bytes: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, usize, usize, u32) -> u32>(address)(dptr, p_pitch, width_in_bytes, height, element_size_bytes) }
    }
    pub unsafe fn cuMemAlloc_v2(entry: Entry, dptr: *mut u64, bytesize: usize) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, usize) -> u32>(address)(dptr, bytesize) }
    }
    pub unsafe fn cuMemCreate(entry: Entry, handle: *mut u64, size: usize, prop: *const c_void, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, usize, *const c_void, u64) -> u32>(address)(handle, size, prop, flags) }
    }
    pub unsafe fn cuMemExportToShareableHandle(entry: Entry, shareable_handle: *mut c_void, handle: u64, handle_type: u32, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, u32, u64) -> u32>(address)(shareable_handle, handle, handle_type, flags) }
    }
    pub unsafe fn cuMemFreeHost(entry: Entry, p: *mut c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void) -> u32>(address)(p) }
    }
    pub unsafe fn cuMemFree_v2(entry: Entry, dptr: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64) -> u32>(address)(dptr) }
    }
    pub unsafe fn cuMemGetAddressRange_v2(entry: Entry, pbase: *mut u64, psize: *mut usize, dptr: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, u64) -> u32>(address)(pbase, psize, dptr) }
    }
    pub unsafe fn cuMemGetAllocationPropertiesFromHandle(entry: Entry, prop: *mut c_void, handle: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64) -> u32>(address)(prop, handle) }
    }
    pub unsafe fn cuMemGetHandleForAddressRange(entry: Entry, handle: *mut c_void, dptr: u64, size: usize, handle_type: u32, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, usize, u32, u64) -> u32>(address)(handle, dptr, size, handle_type, flags) }
    }
    pub unsafe fn cuMemHostAlloc(entry: Entry, pp: *mut *mut c_void, bytesize: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut *mut c_void, usize, u32) -> u32>(address)(pp, bytesize, flags) }
    }
    pub unsafe fn cuMemHostGetFlags(entry: Entry, p_flags: *mut u32, p: *mut c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *mut c_void) -> u32>(address)(p_flags, p) }
    }
    pub unsafe fn cuMemImportFromShareableHandle(entry: Entry, handle: *mut u64, os_handle: *mut c_void, sh_handle_type: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut c_void, u32) -> u32>(address)(handle, os_handle, sh_handle_type) }
    }
    pub unsafe fn cuMemMap(entry: Entry, ptr: u64, size: usize, offset: usize, handle: u64, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, usize, u64, u64) -> u32>(address)(ptr, size, offset, handle, flags) }
    }
    pub unsafe fn cuMemPoolCreate(entry: Entry, pool: *mut Handle, pool_props: *const c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(pool, pool_props) }
    }
    pub unsafe fn cuMemPoolDestroy(entry: Entry, pool: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(pool) }
    }
    pub unsafe fn cuMemPoolExportPointer(entry: Entry, share_data_out: *mut c_void, ptr: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64) -> u32>(address)(share_data_out, ptr) }
    }
    pub unsafe fn cuMemPoolExportToShareableHandle(entry: Entry, handle_out: *mut c_void, pool: Handle, handle_type: u32, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle, u32, u64) -> u32>(address)(handle_out, pool, handle_type, flags) }
    }
    pub unsafe fn cuMemPoolImportFromShareableHandle(entry: Entry, pool_out: *mut Handle, handle: *mut c_void, handle_type: u32, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *mut c_void, u32, u64) -> u32>(address)(pool_out, handle, handle_type, flags) }
    }
    pub unsafe fn cuMemPoolImportPointer(entry: Entry, ptr_out: *mut u64, pool: Handle, share_data: *mut c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, Handle, *mut c_void) -> u32>(address)(ptr_out, pool, share_data) }
    }
    pub unsafe fn cuMemRelease(entry: Entry, handle: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64) -> u32>(address)(handle) }
    }
    pub unsafe fn cuMemRetainAllocationHandle(entry: Entry, handle: *mut u64, addr: *mut c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut c_void) -> u32>(address)(handle, addr) }
    }
    pub unsafe fn cuMemSetAccess(entry: Entry, ptr: u64, size: usize, desc: *const c_void, count: usize) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, *const c_void, usize) -> u32>(address)(ptr, size, desc, count) }
    }
    pub unsafe fn cuMemUnmap(entry: Entry, ptr: u64, size: usize) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize) -> u32>(address)(ptr, size) }
    }
    pub unsafe fn cuMipmappedArrayCreate(entry: Entry, p_handle: *mut Handle, p_mipmapped_array_desc: *const c_void, num_mipmap_levels: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void, u32) -> u32>(address)(p_handle, p_mipmapped_array_desc, num_mipmap_levels) }
    }
    pub unsafe fn cuMipmappedArrayDestroy(entry: Entry, h_mipmapped_array: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_mipmapped_array) }
    }
    pub unsafe fn cuMulticastAddDevice(entry: Entry, mc_handle: u64, dev: i32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, i32) -> u32>(address)(mc_handle, dev) }
    }
    pub unsafe fn cuMulticastBindAddr(entry: Entry, mc_handle: u64, mc_offset: usize, memptr: u64, size: usize, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u64, usize, u64) -> u32>(address)(mc_handle, mc_offset, memptr, size, flags) }
    }
    pub unsafe fn cuMulticastBindAddr_v2(entry: Entry, mc_handle: u64, dev: i32, mc_offset: usize, memptr: u64, size: usize, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, i32, usize, u64, usize, u64) -> u32>(address)(mc_handle, dev, mc_offset, memptr, size, flags) }
    }
    pub unsafe fn cuMulticastBindMem(entry: Entry, mc_handle: u64, mc_offset: usize, mem_handle: u64, mem_offset: usize, size: usize, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u64, usize, usize, u64) -> u32>(address)(mc_handle, mc_offset, mem_handle, mem_offset, size, flags) }
    }
    pub unsafe fn cuMulticastBindMem_v2(entry: Entry, mc_handle: u64, dev: i32, mc_offset: usize, mem_handle: u64, mem_offset: usize, size: usize, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, i32, usize, u64, usize, usize, u64) -> u32>(address)(mc_handle, dev, mc_offset, mem_handle, mem_offset, size, flags) }
    }
    pub unsafe fn cuMulticastCreate(entry: Entry, mc_handle: *mut u64, prop: *const c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *const c_void) -> u32>(address)(mc_handle, prop) }
    }
    pub unsafe fn cuMulticastUnbind(entry: Entry, mc_handle: u64, dev: i32, mc_offset: usize, size: usize) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, i32, usize, usize) -> u32>(address)(mc_handle, dev, mc_offset, size) }
    }
    pub unsafe fn cuPointerGetAttribute(entry: Entry, data: *mut c_void, attribute: u32, ptr: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, u64) -> u32>(address)(data, attribute, ptr) }
    }
    pub unsafe fn cuPointerGetAttributes(entry: Entry, num_attributes: u32, attributes: *mut u32, data: *mut *mut c_void, ptr: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut u32, *mut *mut c_void, u64) -> u32>(address)(num_attributes, attributes, data, ptr) }
    }
    pub unsafe fn cuStreamBeginCapture(entry: Entry, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_stream) }
    }
    pub unsafe fn cuStreamBeginCaptureToCig(entry: Entry, h_stream: Handle, stream_cig_capture_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_stream, stream_cig_capture_params) }
    }
    pub unsafe fn cuStreamBeginCaptureToGraph(entry: Entry, h_stream: Handle, h_graph: Handle, dependencies: *const Handle, dependency_data: *const c_void, num_dependencies: usize, mode: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *const Handle, *const c_void, usize, u32) -> u32>(address)(h_stream, h_graph, dependencies, dependency_data, num_dependencies, mode) }
    }
    pub unsafe fn cuStreamBeginCapture_v2(entry: Entry, h_stream: Handle, mode: u32) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(h_stream, mode) }
    }
    pub unsafe fn cuStreamBeginRecaptureToGraph(entry: Entry, h_stream: Handle, mode: u32, h_graph: Handle, callback_func: Handle, user_data: *mut c_void) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, Handle, Handle, *mut c_void) -> u32>(address)(h_stream, mode, h_graph, callback_func, user_data) }
    }
    pub unsafe fn cuStreamDestroy(entry: Entry, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_stream) }
    }
    pub unsafe fn cuStreamDestroy_v2(entry: Entry, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_stream) }
    }
    pub unsafe fn cuStreamEndCapture(entry: Entry, h_stream: Handle, ph_graph: *mut Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle) -> u32>(address)(h_stream, ph_graph) }
    }
    pub unsafe fn cuStreamEndCaptureToCig(entry: Entry, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_stream) }
    }
}

/// What the library exports.
#[rustfmt::skip]
#[allow(non_snake_case, missing_docs, dead_code, clippy::missing_safety_doc, clippy::too_many_arguments)]
pub mod exports {
    use super::*;
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArray3DCreate(p_handle: *mut Handle, p_allocate_array: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_ARRAY3_DCREATE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(p_handle, p_allocate_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArray3DCreate_v2(p_handle: *mut Handle, p_allocate_array: *const c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::arrays::cuArray3DCreate_v2(ids::CU_ARRAY3_DCREATE_V2, p_handle, p_allocate_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArray3DGetDescriptor(p_array_descriptor: *mut c_void, h_array: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_ARRAY3_DGET_DESCRIPTOR) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle) -> u32>(address)(p_array_descriptor, h_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArray3DGetDescriptor_v2(p_array_descriptor: *mut c_void, h_array: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_ARRAY3_DGET_DESCRIPTOR_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle) -> u32>(address)(p_array_descriptor, h_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArrayCreate(p_handle: *mut Handle, p_allocate_array: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_ARRAY_CREATE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(p_handle, p_allocate_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArrayCreate_v2(p_handle: *mut Handle, p_allocate_array: *const c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::arrays::cuArrayCreate_v2(ids::CU_ARRAY_CREATE_V2, p_handle, p_allocate_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArrayDestroy(h_array: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::arrays::cuArrayDestroy(ids::CU_ARRAY_DESTROY, h_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArrayGetDescriptor(p_array_descriptor: *mut c_void, h_array: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_ARRAY_GET_DESCRIPTOR) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle) -> u32>(address)(p_array_descriptor, h_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArrayGetDescriptor_v2(p_array_descriptor: *mut c_void, h_array: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_ARRAY_GET_DESCRIPTOR_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle) -> u32>(address)(p_array_descriptor, h_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArrayGetMemoryRequirements(memory_requirements: *mut c_void, array: Handle, device: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_ARRAY_GET_MEMORY_REQUIREMENTS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle, i32) -> u32>(address)(memory_requirements, array, device) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArrayGetPlane(p_plane_array: *mut Handle, h_array: Handle, plane_idx: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_ARRAY_GET_PLANE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, u32) -> u32>(address)(p_plane_array, h_array, plane_idx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArrayGetSparseProperties(sparse_properties: *mut c_void, array: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_ARRAY_GET_SPARSE_PROPERTIES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle) -> u32>(address)(sparse_properties, array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCheckpointOperationComplete(handle: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CHECKPOINT_OPERATION_COMPLETE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(handle) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCheckpointProcessCheckpoint(pid: i32, args: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_CHECKPOINT_PROCESS_CHECKPOINT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, *mut c_void) -> u32>(address)(pid, args) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCheckpointProcessGetRestoreThreadId(pid: i32, tid: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_CHECKPOINT_PROCESS_GET_RESTORE_THREAD_ID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, *mut i32) -> u32>(address)(pid, tid) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCheckpointProcessGetState(pid: i32, state: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CHECKPOINT_PROCESS_GET_STATE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, *mut u32) -> u32>(address)(pid, state) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCheckpointProcessLock(pid: i32, args: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_CHECKPOINT_PROCESS_LOCK) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, *mut c_void) -> u32>(address)(pid, args) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCheckpointProcessRestore(pid: i32, args: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_CHECKPOINT_PROCESS_RESTORE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, *mut c_void) -> u32>(address)(pid, args) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCheckpointProcessUnlock(pid: i32, args: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_CHECKPOINT_PROCESS_UNLOCK) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, *mut c_void) -> u32>(address)(pid, args) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCoredumpDeregisterCompleteCallback(callback: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_COREDUMP_DEREGISTER_COMPLETE_CALLBACK) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(callback) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCoredumpDeregisterStartCallback(callback: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_COREDUMP_DEREGISTER_START_CALLBACK) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(callback) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCoredumpGetAttribute(attrib: u32, value: *mut c_void, size: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_COREDUMP_GET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut c_void, *mut usize) -> u32>(address)(attrib, value, size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCoredumpGetAttributeGlobal(attrib: u32, value: *mut c_void, size: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_COREDUMP_GET_ATTRIBUTE_GLOBAL) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut c_void, *mut usize) -> u32>(address)(attrib, value, size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCoredumpRegisterCompleteCallback(callback: Handle, user_data: *mut c_void, callback_out: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_COREDUMP_REGISTER_COMPLETE_CALLBACK) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void, *mut Handle) -> u32>(address)(callback, user_data, callback_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCoredumpRegisterStartCallback(callback: Handle, user_data: *mut c_void, callback_out: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_COREDUMP_REGISTER_START_CALLBACK) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void, *mut Handle) -> u32>(address)(callback, user_data, callback_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCoredumpSetAttribute(attrib: u32, value: *mut c_void, size: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_COREDUMP_SET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut c_void, *mut usize) -> u32>(address)(attrib, value, size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCoredumpSetAttributeGlobal(attrib: u32, value: *mut c_void, size: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_COREDUMP_SET_ATTRIBUTE_GLOBAL) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut c_void, *mut usize) -> u32>(address)(attrib, value, size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxAttach(pctx: *mut Handle, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuCtxAttach(ids::CU_CTX_ATTACH, pctx, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxCreate(pctx: *mut Handle, flags: u32, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuCtxCreate(ids::CU_CTX_CREATE, pctx, flags, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxCreate_v2(pctx: *mut Handle, flags: u32, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuCtxCreate_v2(ids::CU_CTX_CREATE_V2, pctx, flags, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxCreate_v3(pctx: *mut Handle, params_array: *mut c_void, num_params: i32, flags: u32, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuCtxCreate_v3(ids::CU_CTX_CREATE_V3, pctx, params_array, num_params, flags, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxCreate_v4(pctx: *mut Handle, ctx_create_params: *mut c_void, flags: u32, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuCtxCreate_v4(ids::CU_CTX_CREATE_V4, pctx, ctx_create_params, flags, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxDestroy(ctx: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuCtxDestroy(ids::CU_CTX_DESTROY, ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxDestroy_v2(ctx: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuCtxDestroy_v2(ids::CU_CTX_DESTROY_V2, ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxDetach(ctx: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuCtxDetach(ids::CU_CTX_DETACH, ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxDisablePeerAccess(peer_context: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::peers::cuCtxDisablePeerAccess(ids::CU_CTX_DISABLE_PEER_ACCESS, peer_context) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxEnablePeerAccess(peer_context: Handle, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::peers::cuCtxEnablePeerAccess(ids::CU_CTX_ENABLE_PEER_ACCESS, peer_context, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxFromGreenCtx(p_context: *mut Handle, h_ctx: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuCtxFromGreenCtx(ids::CU_CTX_FROM_GREEN_CTX, p_context, h_ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetApiVersion(ctx: Handle, version: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_API_VERSION) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32) -> u32>(address)(ctx, version) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetCacheConfig(pconfig: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_CACHE_CONFIG) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32) -> u32>(address)(pconfig) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetCurrent(pctx: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_CURRENT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle) -> u32>(address)(pctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetDevResource(h_ctx: Handle, resource: *mut c_void, type_: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_DEV_RESOURCE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void, u32) -> u32>(address)(h_ctx, resource, type_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetDevice(device: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_DEVICE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32) -> u32>(address)(device) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetDevice_v2(device: *mut i32, ctx: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_DEVICE_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, Handle) -> u32>(address)(device, ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetExecAffinity(p_exec_affinity: *mut c_void, type_: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_EXEC_AFFINITY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32) -> u32>(address)(p_exec_affinity, type_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetFlags(flags: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_FLAGS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32) -> u32>(address)(flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetId(ctx: Handle, ctx_id: *mut u64) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_ID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u64) -> u32>(address)(ctx, ctx_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetLimit(pvalue: *mut usize, limit: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_LIMIT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, u32) -> u32>(address)(pvalue, limit) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetSharedMemConfig(p_config: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_SHARED_MEM_CONFIG) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32) -> u32>(address)(p_config) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetStreamPriorityRange(least_priority: *mut i32, greatest_priority: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_STREAM_PRIORITY_RANGE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, *mut i32) -> u32>(address)(least_priority, greatest_priority) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxPopCurrent(pctx: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_POP_CURRENT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle) -> u32>(address)(pctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxPopCurrent_v2(pctx: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_POP_CURRENT_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle) -> u32>(address)(pctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxPushCurrent(ctx: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_PUSH_CURRENT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxPushCurrent_v2(ctx: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_PUSH_CURRENT_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxRecordEvent(h_ctx: Handle, h_event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_RECORD_EVENT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_ctx, h_event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxResetPersistingL2Cache() -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_RESET_PERSISTING_L2_CACHE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn() -> u32>(address)() }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxSetCacheConfig(config: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_SET_CACHE_CONFIG) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32) -> u32>(address)(config) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxSetCurrent(ctx: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_SET_CURRENT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxSetFlags(flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_SET_FLAGS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32) -> u32>(address)(flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxSetLimit(limit: u32, value: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_SET_LIMIT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, usize) -> u32>(address)(limit, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxSetSharedMemConfig(config: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_SET_SHARED_MEM_CONFIG) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32) -> u32>(address)(config) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxSynchronize() -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_SYNCHRONIZE) else { return driver::missing() };
        let inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn() -> u32>(address)() };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxSynchronize_v2(ctx: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_SYNCHRONIZE_V2) else { return driver::missing() };
        let inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(ctx) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxWaitEvent(h_ctx: Handle, h_event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_WAIT_EVENT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_ctx, h_event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDestroyExternalMemory(ext_mem: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuDestroyExternalMemory(ids::CU_DESTROY_EXTERNAL_MEMORY, ext_mem) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDestroyExternalSemaphore(ext_sem: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuDestroyExternalSemaphore(ids::CU_DESTROY_EXTERNAL_SEMAPHORE, ext_sem) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevResourceGenerateDesc(ph_desc: *mut Handle, resources: *mut c_void, nb_resources: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEV_RESOURCE_GENERATE_DESC) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *mut c_void, u32) -> u32>(address)(ph_desc, resources, nb_resources) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevSmResourceSplit(result: *mut c_void, nb_groups: u32, input: *const c_void, remainder: *mut c_void, flags: u32, group_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_DEV_SM_RESOURCE_SPLIT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, *const c_void, *mut c_void, u32, *mut c_void) -> u32>(address)(result, nb_groups, input, remainder, flags, group_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevSmResourceSplitByCount(result: *mut c_void, nb_groups: *mut u32, input: *const c_void, remainder: *mut c_void, flags: u32, min_count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEV_SM_RESOURCE_SPLIT_BY_COUNT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, *mut u32, *const c_void, *mut c_void, u32, u32) -> u32>(address)(result, nb_groups, input, remainder, flags, min_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceCanAccessPeer(can_access_peer: *mut i32, dev: i32, peer_dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_CAN_ACCESS_PEER) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, i32, i32) -> u32>(address)(can_access_peer, dev, peer_dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceComputeCapability(major: *mut i32, minor: *mut i32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_COMPUTE_CAPABILITY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, *mut i32, i32) -> u32>(address)(major, minor, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGet(device: *mut i32, ordinal: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, i32) -> u32>(address)(device, ordinal) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetAttribute(pi: *mut i32, attrib: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, u32, i32) -> u32>(address)(pi, attrib, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetByPCIBusId(dev: *mut i32, pci_bus_id: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_BY_PCIBUS_ID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, *const std::ffi::c_char) -> u32>(address)(dev, pci_bus_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetCliqueCount(count: *mut usize, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_CLIQUE_COUNT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, i32) -> u32>(address)(count, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetCliqueInfo(clique_info: *mut c_void, count: *mut usize, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_CLIQUE_INFO) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, *mut usize, i32) -> u32>(address)(clique_info, count, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetCount(count: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_COUNT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32) -> u32>(address)(count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetDefaultMemPool(pool_out: *mut Handle, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_DEFAULT_MEM_POOL) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, i32) -> u32>(address)(pool_out, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetDevResource(device: i32, resource: *mut c_void, type_: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_DEV_RESOURCE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, *mut c_void, u32) -> u32>(address)(device, resource, type_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetExecAffinitySupport(pi: *mut i32, type_: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_EXEC_AFFINITY_SUPPORT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, u32, i32) -> u32>(address)(pi, type_, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetFabricClusterUuid(uuid: *mut c_void, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_FABRIC_CLUSTER_UUID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, i32) -> u32>(address)(uuid, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetGraphMemAttribute(device: i32, attr: u32, value: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_GRAPH_MEM_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, u32, *mut c_void) -> u32>(address)(device, attr, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetHostAtomicCapabilities(capabilities: *mut u32, operations: *const u32, count: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_HOST_ATOMIC_CAPABILITIES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *const u32, u32, i32) -> u32>(address)(capabilities, operations, count, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetLuid(luid: *mut std::ffi::c_char, device_node_mask: *mut u32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_LUID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut std::ffi::c_char, *mut u32, i32) -> u32>(address)(luid, device_node_mask, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetMemPool(pool: *mut Handle, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_MEM_POOL) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, i32) -> u32>(address)(pool, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetName(name: *mut std::ffi::c_char, len: i32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_NAME) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut std::ffi::c_char, i32, i32) -> u32>(address)(name, len, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetNvSciSyncAttributes(nv_sci_sync_attr_list: *mut c_void, dev: i32, flags: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_NV_SCI_SYNC_ATTRIBUTES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, i32, i32) -> u32>(address)(nv_sci_sync_attr_list, dev, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetP2PAtomicCapabilities(capabilities: *mut u32, operations: *const u32, count: u32, src_device: i32, dst_device: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_P2_PATOMIC_CAPABILITIES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *const u32, u32, i32, i32) -> u32>(address)(capabilities, operations, count, src_device, dst_device) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetP2PAttribute(value: *mut i32, attrib: u32, src_device: i32, dst_device: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_P2_PATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, u32, i32, i32) -> u32>(address)(value, attrib, src_device, dst_device) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetPCIBusId(pci_bus_id: *mut std::ffi::c_char, len: i32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_PCIBUS_ID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut std::ffi::c_char, i32, i32) -> u32>(address)(pci_bus_id, len, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetProperties(prop: *mut c_void, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_PROPERTIES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, i32) -> u32>(address)(prop, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetTexture1DLinearMaxWidth(max_width_in_elements: *mut usize, format: u32, num_channels: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_TEXTURE1_DLINEAR_MAX_WIDTH) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, u32, u32, i32) -> u32>(address)(max_width_in_elements, format, num_channels, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut c_void, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_UUID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, i32) -> u32>(address)(uuid, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut c_void, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GET_UUID_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, i32) -> u32>(address)(uuid, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceGraphMemTrim(device: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GRAPH_MEM_TRIM) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32) -> u32>(address)(device) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxGetState(dev: i32, flags: *mut u32, active: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_PRIMARY_CTX_GET_STATE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, *mut u32, *mut i32) -> u32>(address)(dev, flags, active) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxRelease(dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuDevicePrimaryCtxRelease(ids::CU_DEVICE_PRIMARY_CTX_RELEASE, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxRelease_v2(dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuDevicePrimaryCtxRelease_v2(ids::CU_DEVICE_PRIMARY_CTX_RELEASE_V2, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxReset(dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuDevicePrimaryCtxReset(ids::CU_DEVICE_PRIMARY_CTX_RESET, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxReset_v2(dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuDevicePrimaryCtxReset_v2(ids::CU_DEVICE_PRIMARY_CTX_RESET_V2, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(pctx: *mut Handle, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuDevicePrimaryCtxRetain(ids::CU_DEVICE_PRIMARY_CTX_RETAIN, pctx, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxSetFlags(dev: i32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_PRIMARY_CTX_SET_FLAGS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, u32) -> u32>(address)(dev, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxSetFlags_v2(dev: i32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_PRIMARY_CTX_SET_FLAGS_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, u32) -> u32>(address)(dev, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceRegisterAsyncNotification(device: i32, callback_func: Handle, user_data: *mut c_void, callback: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_REGISTER_ASYNC_NOTIFICATION) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, Handle, *mut c_void, *mut Handle) -> u32>(address)(device, callback_func, user_data, callback) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceSetGraphMemAttribute(device: i32, attr: u32, value: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_SET_GRAPH_MEM_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, u32, *mut c_void) -> u32>(address)(device, attr, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceSetMemPool(dev: i32, pool: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_SET_MEM_POOL) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, Handle) -> u32>(address)(dev, pool) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceTotalMem(bytes: *mut u32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_TOTAL_MEM) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, i32) -> u32>(address)(bytes, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_TOTAL_MEM_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, i32) -> u32>(address)(bytes, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDeviceUnregisterAsyncNotification(device: i32, callback: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_UNREGISTER_ASYNC_NOTIFICATION) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32, Handle) -> u32>(address)(device, callback) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDriverGetVersion(driver_version: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DRIVER_GET_VERSION) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32) -> u32>(address)(driver_version) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventCreate(ph_event: *mut Handle, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::events::cuEventCreate(ids::CU_EVENT_CREATE, ph_event, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventDestroy(h_event: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::events::cuEventDestroy(ids::CU_EVENT_DESTROY, h_event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventDestroy_v2(h_event: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::events::cuEventDestroy_v2(ids::CU_EVENT_DESTROY_V2, h_event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventElapsedTime(p_milliseconds: *mut f32, h_start: Handle, h_end: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_EVENT_ELAPSED_TIME) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut f32, Handle, Handle) -> u32>(address)(p_milliseconds, h_start, h_end) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventElapsedTime_v2(p_milliseconds: *mut f32, h_start: Handle, h_end: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_EVENT_ELAPSED_TIME_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut f32, Handle, Handle) -> u32>(address)(p_milliseconds, h_start, h_end) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventQuery(h_event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_EVENT_QUERY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventRecord(h_event: Handle, h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::events::cuEventRecord(ids::CU_EVENT_RECORD, h_event, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventRecordWithFlags(h_event: Handle, h_stream: Handle, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::events::cuEventRecordWithFlags(ids::CU_EVENT_RECORD_WITH_FLAGS, h_event, h_stream, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventRecordWithFlags_ptsz(h_event: Handle, h_stream: Handle, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::events::cuEventRecordWithFlags(ids::CU_EVENT_RECORD_WITH_FLAGS_PTSZ, h_event, h_stream, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventRecord_ptsz(h_event: Handle, h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::events::cuEventRecord(ids::CU_EVENT_RECORD_PTSZ, h_event, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventSynchronize(h_event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_EVENT_SYNCHRONIZE) else { return driver::missing() };
        let inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_event) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuExternalMemoryGetMappedBuffer(dev_ptr: *mut u64, ext_mem: Handle, buffer_desc: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_EXTERNAL_MEMORY_GET_MAPPED_BUFFER) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, Handle, *const c_void) -> u32>(address)(dev_ptr, ext_mem, buffer_desc) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuExternalMemoryGetMappedMipmappedArray(mipmap: *mut Handle, ext_mem: Handle, mipmap_desc: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_EXTERNAL_MEMORY_GET_MAPPED_MIPMAPPED_ARRAY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const c_void) -> u32>(address)(mipmap, ext_mem, mipmap_desc) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFabricCpyBatchAsync(num_ops: usize, op_list: *mut c_void, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_FABRIC_CPY_BATCH_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(usize, *mut c_void, u64, Handle) -> u32>(address)(num_ops, op_list, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFabricCpyBatchAsync_ptsz(num_ops: usize, op_list: *mut c_void, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_FABRIC_CPY_BATCH_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(usize, *mut c_void, u64, Handle) -> u32>(address)(num_ops, op_list, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFlushGPUDirectRDMAWrites(target: u32, scope: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_FLUSH_GPUDIRECT_RDMAWRITES) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u32) -> u32>(address)(target, scope) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncGetAttribute(pi: *mut i32, attrib: u32, hfunc: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_GET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, u32, Handle) -> u32>(address)(pi, attrib, hfunc) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncGetModule(hmod: *mut Handle, hfunc: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_GET_MODULE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle) -> u32>(address)(hmod, hfunc) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncGetName(name: *mut *const std::ffi::c_char, hfunc: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_GET_NAME) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut *const std::ffi::c_char, Handle) -> u32>(address)(name, hfunc) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncGetParamCount(func: Handle, param_count: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_GET_PARAM_COUNT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut usize) -> u32>(address)(func, param_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncGetParamInfo(func: Handle, param_index: usize, param_offset: *mut usize, param_size: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_GET_PARAM_INFO) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> u32>(address)(func, param_index, param_offset, param_size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncIsLoaded(state: *mut u32, function: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_IS_LOADED) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, Handle) -> u32>(address)(state, function) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncLoad(function: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_LOAD) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(function) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncSetAttribute(hfunc: Handle, attrib: u32, value: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_SET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, i32) -> u32>(address)(hfunc, attrib, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncSetBlockShape(hfunc: Handle, x: i32, y: i32, z: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_SET_BLOCK_SHAPE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, i32, i32, i32) -> u32>(address)(hfunc, x, y, z) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncSetCacheConfig(hfunc: Handle, config: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_SET_CACHE_CONFIG) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(hfunc, config) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncSetSharedMemConfig(hfunc: Handle, config: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_SET_SHARED_MEM_CONFIG) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(hfunc, config) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFuncSetSharedSize(hfunc: Handle, bytes: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_FUNC_SET_SHARED_SIZE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(hfunc, bytes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGetErrorName(error: u32, p_str: *mut *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_GET_ERROR_NAME) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut *const std::ffi::c_char) -> u32>(address)(error, p_str) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGetErrorString(error: u32, p_str: *mut *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_GET_ERROR_STRING) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut *const std::ffi::c_char) -> u32>(address)(error, p_str) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGetExportTable(pp_export_table: *mut *const c_void, p_export_table_id: *const c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::interpose::export_table::cuGetExportTable(ids::CU_GET_EXPORT_TABLE, pp_export_table, p_export_table_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGetProcAddress(symbol: *const std::ffi::c_char, pfn: *mut *mut c_void, cuda_version: i32, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::interpose::proc_address::cuGetProcAddress(ids::CU_GET_PROC_ADDRESS, symbol, pfn, cuda_version, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGetProcAddress_v2(symbol: *const std::ffi::c_char, pfn: *mut *mut c_void, cuda_version: i32, flags: u64, symbol_status: *mut u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::interpose::proc_address::cuGetProcAddress_v2(ids::CU_GET_PROC_ADDRESS_V2, symbol, pfn, cuda_version, flags, symbol_status) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddBatchMemOpNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_BATCH_MEM_OP_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddChildGraphNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, child_graph: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphAddChildGraphNode(ids::CU_GRAPH_ADD_CHILD_GRAPH_NODE, ph_graph_node, h_graph, dependencies, num_dependencies, child_graph) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddDependencies(h_graph: Handle, from: *const Handle, to: *const Handle, num_dependencies: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_DEPENDENCIES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const Handle, *const Handle, usize) -> u32>(address)(h_graph, from, to, num_dependencies) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddDependencies_v2(h_graph: Handle, from: *const Handle, to: *const Handle, edge_data: *const c_void, num_dependencies: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_DEPENDENCIES_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const Handle, *const Handle, *const c_void, usize) -> u32>(address)(h_graph, from, to, edge_data, num_dependencies) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddEmptyNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_EMPTY_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddEventRecordNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_EVENT_RECORD_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, Handle) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddEventWaitNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_EVENT_WAIT_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, Handle) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddExternalSemaphoresSignalNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_EXTERNAL_SEMAPHORES_SIGNAL_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddExternalSemaphoresWaitNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_EXTERNAL_SEMAPHORES_WAIT_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddHostNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_HOST_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddKernelNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_KERNEL_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddKernelNode_v2(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_KERNEL_NODE_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddMemAllocNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_MEM_ALLOC_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *mut c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddMemFreeNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, dptr: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_MEM_FREE_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, u64) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, dptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddMemcpyNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, copy_params: *const c_void, ctx: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_MEMCPY_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const c_void, Handle) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, copy_params, ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddMemsetNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, memset_params: *const c_void, ctx: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_MEMSET_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *const c_void, Handle) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, memset_params, ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddNode(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, num_dependencies: usize, node_params: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphAddNode(ids::CU_GRAPH_ADD_NODE, ph_graph_node, h_graph, dependencies, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddNode_v2(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, dependency_data: *const c_void, num_dependencies: usize, node_params: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphAddNode_v2(ids::CU_GRAPH_ADD_NODE_V2, ph_graph_node, h_graph, dependencies, dependency_data, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddNode_v3(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, dependency_data: *const c_void, num_dependencies: usize, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_NODE_V3) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, *const c_void, usize, *mut c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, dependency_data, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphBatchMemOpNodeGetParams(h_node: Handle, node_params_out: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_BATCH_MEM_OP_NODE_GET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, node_params_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphBatchMemOpNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_BATCH_MEM_OP_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphChildGraphNodeGetGraph(h_node: Handle, ph_graph: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_CHILD_GRAPH_NODE_GET_GRAPH) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle) -> u32>(address)(h_node, ph_graph) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphClone(ph_graph_clone: *mut Handle, original_graph: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphClone(ids::CU_GRAPH_CLONE, ph_graph_clone, original_graph) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphConditionalHandleCreate(p_handle_out: *mut u64, h_graph: Handle, ctx: Handle, default_launch_value: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_CONDITIONAL_HANDLE_CREATE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, Handle, Handle, u32, u32) -> u32>(address)(p_handle_out, h_graph, ctx, default_launch_value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphCreate(ph_graph: *mut Handle, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphCreate(ids::CU_GRAPH_CREATE, ph_graph, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphDebugDotPrint(h_graph: Handle, path: *const std::ffi::c_char, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_DEBUG_DOT_PRINT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const std::ffi::c_char, u32) -> u32>(address)(h_graph, path, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphDestroy(h_graph: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphDestroy(ids::CU_GRAPH_DESTROY, h_graph) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphDestroyNode(h_node: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_DESTROY_NODE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_node) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphEventRecordNodeGetEvent(h_node: Handle, event_out: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EVENT_RECORD_NODE_GET_EVENT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle) -> u32>(address)(h_node, event_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphEventRecordNodeSetEvent(h_node: Handle, event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EVENT_RECORD_NODE_SET_EVENT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_node, event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphEventWaitNodeGetEvent(h_node: Handle, event_out: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EVENT_WAIT_NODE_GET_EVENT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle) -> u32>(address)(h_node, event_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphEventWaitNodeSetEvent(h_node: Handle, event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EVENT_WAIT_NODE_SET_EVENT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_node, event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecBatchMemOpNodeSetParams(h_graph_exec: Handle, h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_BATCH_MEM_OP_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *const c_void) -> u32>(address)(h_graph_exec, h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecChildGraphNodeSetParams(h_graph_exec: Handle, h_node: Handle, child_graph: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_CHILD_GRAPH_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, Handle) -> u32>(address)(h_graph_exec, h_node, child_graph) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecDestroy(h_graph_exec: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphExecDestroy(ids::CU_GRAPH_EXEC_DESTROY, h_graph_exec) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecEventRecordNodeSetEvent(h_graph_exec: Handle, h_node: Handle, event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_EVENT_RECORD_NODE_SET_EVENT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, Handle) -> u32>(address)(h_graph_exec, h_node, event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecEventWaitNodeSetEvent(h_graph_exec: Handle, h_node: Handle, event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_EVENT_WAIT_NODE_SET_EVENT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, Handle) -> u32>(address)(h_graph_exec, h_node, event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecExternalSemaphoresSignalNodeSetParams(h_graph_exec: Handle, h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_EXTERNAL_SEMAPHORES_SIGNAL_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *const c_void) -> u32>(address)(h_graph_exec, h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecExternalSemaphoresWaitNodeSetParams(h_graph_exec: Handle, h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_EXTERNAL_SEMAPHORES_WAIT_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *const c_void) -> u32>(address)(h_graph_exec, h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecGetFlags(h_graph_exec: Handle, flags: *mut u64) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_GET_FLAGS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u64) -> u32>(address)(h_graph_exec, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecGetId(h_graph_exec: Handle, graph_id: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_GET_ID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32) -> u32>(address)(h_graph_exec, graph_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecHostNodeSetParams(h_graph_exec: Handle, h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_HOST_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *const c_void) -> u32>(address)(h_graph_exec, h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecKernelNodeSetParams(h_graph_exec: Handle, h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_KERNEL_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *const c_void) -> u32>(address)(h_graph_exec, h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecKernelNodeSetParams_v2(h_graph_exec: Handle, h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_KERNEL_NODE_SET_PARAMS_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *const c_void) -> u32>(address)(h_graph_exec, h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecMemcpyNodeSetParams(h_graph_exec: Handle, h_node: Handle, copy_params: *const c_void, ctx: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_MEMCPY_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *const c_void, Handle) -> u32>(address)(h_graph_exec, h_node, copy_params, ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecMemsetNodeSetParams(h_graph_exec: Handle, h_node: Handle, memset_params: *const c_void, ctx: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_MEMSET_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *const c_void, Handle) -> u32>(address)(h_graph_exec, h_node, memset_params, ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecNodeSetParams(h_graph_exec: Handle, h_node: Handle, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut c_void) -> u32>(address)(h_graph_exec, h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecUpdate(h_graph_exec: Handle, h_graph: Handle, h_error_node_out: *mut Handle, update_result_out: *mut u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphExecUpdate(ids::CU_GRAPH_EXEC_UPDATE, h_graph_exec, h_graph, h_error_node_out, update_result_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecUpdate_v2(h_graph_exec: Handle, h_graph: Handle, result_info: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphExecUpdate_v2(ids::CU_GRAPH_EXEC_UPDATE_V2, h_graph_exec, h_graph, result_info) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExternalSemaphoresSignalNodeGetParams(h_node: Handle, params_out: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXTERNAL_SEMAPHORES_SIGNAL_NODE_GET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, params_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExternalSemaphoresSignalNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXTERNAL_SEMAPHORES_SIGNAL_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExternalSemaphoresWaitNodeGetParams(h_node: Handle, params_out: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXTERNAL_SEMAPHORES_WAIT_NODE_GET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, params_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExternalSemaphoresWaitNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXTERNAL_SEMAPHORES_WAIT_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphGetEdges(h_graph: Handle, from: *mut Handle, to: *mut Handle, num_edges: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_GET_EDGES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *mut Handle, *mut usize) -> u32>(address)(h_graph, from, to, num_edges) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphGetEdges_v2(h_graph: Handle, from: *mut Handle, to: *mut Handle, edge_data: *mut c_void, num_edges: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_GET_EDGES_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *mut Handle, *mut c_void, *mut usize) -> u32>(address)(h_graph, from, to, edge_data, num_edges) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphGetId(h_graph: Handle, graph_id: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_GET_ID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32) -> u32>(address)(h_graph, graph_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphGetNodes(h_graph: Handle, nodes: *mut Handle, num_nodes: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_GET_NODES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *mut usize) -> u32>(address)(h_graph, nodes, num_nodes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphGetRootNodes(h_graph: Handle, root_nodes: *mut Handle, num_root_nodes: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_GET_ROOT_NODES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *mut usize) -> u32>(address)(h_graph, root_nodes, num_root_nodes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphHostNodeGetParams(h_node: Handle, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_HOST_NODE_GET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphHostNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_HOST_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphInstantiate(ph_graph_exec: *mut Handle, h_graph: Handle, ph_error_node: *mut Handle, log_buffer: *mut std::ffi::c_char, buffer_size: usize) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphInstantiate(ids::CU_GRAPH_INSTANTIATE, ph_graph_exec, h_graph, ph_error_node, log_buffer, buffer_size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphInstantiateWithFlags(ph_graph_exec: *mut Handle, h_graph: Handle, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphInstantiateWithFlags(ids::CU_GRAPH_INSTANTIATE_WITH_FLAGS, ph_graph_exec, h_graph, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphInstantiateWithParams(ph_graph_exec: *mut Handle, h_graph: Handle, instantiate_params: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphInstantiateWithParams(ids::CU_GRAPH_INSTANTIATE_WITH_PARAMS, ph_graph_exec, h_graph, instantiate_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphInstantiateWithParams_ptsz(ph_graph_exec: *mut Handle, h_graph: Handle, instantiate_params: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphInstantiateWithParams(ids::CU_GRAPH_INSTANTIATE_WITH_PARAMS_PTSZ, ph_graph_exec, h_graph, instantiate_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphInstantiate_v2(ph_graph_exec: *mut Handle, h_graph: Handle, ph_error_node: *mut Handle, log_buffer: *mut std::ffi::c_char, buffer_size: usize) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphInstantiate_v2(ids::CU_GRAPH_INSTANTIATE_V2, ph_graph_exec, h_graph, ph_error_node, log_buffer, buffer_size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphKernelNodeCopyAttributes(dst: Handle, src: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_KERNEL_NODE_COPY_ATTRIBUTES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(dst, src) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphKernelNodeGetAttribute(h_node: Handle, attr: u32, value_out: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_KERNEL_NODE_GET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void) -> u32>(address)(h_node, attr, value_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphKernelNodeGetParams(h_node: Handle, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_KERNEL_NODE_GET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphKernelNodeGetParams_v2(h_node: Handle, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_KERNEL_NODE_GET_PARAMS_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphKernelNodeSetAttribute(h_node: Handle, attr: u32, value: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_KERNEL_NODE_SET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *const c_void) -> u32>(address)(h_node, attr, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphKernelNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_KERNEL_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphKernelNodeSetParams_v2(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_KERNEL_NODE_SET_PARAMS_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphLaunch(h_graph: Handle, h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphLaunch(ids::CU_GRAPH_LAUNCH, h_graph, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphLaunch_ptsz(h_graph_exec: Handle, h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::ranks::graphs::cuGraphLaunch(ids::CU_GRAPH_LAUNCH_PTSZ, h_graph_exec, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphMemAllocNodeGetParams(h_node: Handle, params_out: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_MEM_ALLOC_NODE_GET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, params_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphMemFreeNodeGetParams(h_node: Handle, dptr_out: *mut u64) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_MEM_FREE_NODE_GET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u64) -> u32>(address)(h_node, dptr_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphMemcpyNodeGetParams(h_node: Handle, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_MEMCPY_NODE_GET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphMemcpyNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_MEMCPY_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphMemsetNodeGetParams(h_node: Handle, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_MEMSET_NODE_GET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphMemsetNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_MEMSET_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeFindInClone(ph_node: *mut Handle, h_original_node: Handle, h_cloned_graph: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_FIND_IN_CLONE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, Handle) -> u32>(address)(ph_node, h_original_node, h_cloned_graph) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeGetContainingGraph(h_node: Handle, ph_graph: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_GET_CONTAINING_GRAPH) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle) -> u32>(address)(h_node, ph_graph) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeGetDependencies(h_node: Handle, dependencies: *mut Handle, num_dependencies: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_GET_DEPENDENCIES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *mut usize) -> u32>(address)(h_node, dependencies, num_dependencies) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeGetDependencies_v2(h_node: Handle, dependencies: *mut Handle, edge_data: *mut c_void, num_dependencies: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_GET_DEPENDENCIES_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *mut c_void, *mut usize) -> u32>(address)(h_node, dependencies, edge_data, num_dependencies) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeGetDependentNodes(h_node: Handle, dependent_nodes: *mut Handle, num_dependent_nodes: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_GET_DEPENDENT_NODES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *mut usize) -> u32>(address)(h_node, dependent_nodes, num_dependent_nodes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeGetDependentNodes_v2(h_node: Handle, dependent_nodes: *mut Handle, edge_data: *mut c_void, num_dependent_nodes: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_GET_DEPENDENT_NODES_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *mut c_void, *mut usize) -> u32>(address)(h_node, dependent_nodes, edge_data, num_dependent_nodes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeGetEnabled(h_graph_exec: Handle, h_node: Handle, is_enabled: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_GET_ENABLED) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut u32) -> u32>(address)(h_graph_exec, h_node, is_enabled) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeGetLocalId(h_node: Handle, node_id: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_GET_LOCAL_ID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32) -> u32>(address)(h_node, node_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeGetParams(h_node: Handle, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_GET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeGetToolsId(h_node: Handle, tools_node_id: *mut u64) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_GET_TOOLS_ID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u64) -> u32>(address)(h_node, tools_node_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeGetType(h_node: Handle, type_: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_GET_TYPE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32) -> u32>(address)(h_node, type_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeSetEnabled(h_graph_exec: Handle, h_node: Handle, is_enabled: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_SET_ENABLED) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32) -> u32>(address)(h_graph_exec, h_node, is_enabled) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeSetParams(h_node: Handle, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeSetParams_v2(h_node: Handle, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_SET_PARAMS_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphReleaseUserObject(graph: Handle, object: Handle, count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_RELEASE_USER_OBJECT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32) -> u32>(address)(graph, object, count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphRemoveDependencies(h_graph: Handle, from: *const Handle, to: *const Handle, num_dependencies: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_REMOVE_DEPENDENCIES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const Handle, *const Handle, usize) -> u32>(address)(h_graph, from, to, num_dependencies) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphRemoveDependencies_v2(h_graph: Handle, from: *const Handle, to: *const Handle, edge_data: *const c_void, num_dependencies: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_REMOVE_DEPENDENCIES_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const Handle, *const Handle, *const c_void, usize) -> u32>(address)(h_graph, from, to, edge_data, num_dependencies) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphRetainUserObject(graph: Handle, object: Handle, count: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_RETAIN_USER_OBJECT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32, u32) -> u32>(address)(graph, object, count, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphUpload(h_graph: Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_UPLOAD) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_graph, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphUpload_ptsz(h_graph_exec: Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_UPLOAD_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_graph_exec, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsMapResources(count: u32, resources: *mut Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_MAP_RESOURCES) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut Handle, Handle) -> u32>(address)(count, resources, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsMapResources_ptsz(count: u32, resources: *mut Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_MAP_RESOURCES_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut Handle, Handle) -> u32>(address)(count, resources, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsResourceGetMappedMipmappedArray(p_mipmapped_array: *mut Handle, resource: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_RESOURCE_GET_MAPPED_MIPMAPPED_ARRAY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle) -> u32>(address)(p_mipmapped_array, resource) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsResourceGetMappedPointer(p_dev_ptr: *mut u32, p_size: *mut u32, resource: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_RESOURCE_GET_MAPPED_POINTER) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *mut u32, Handle) -> u32>(address)(p_dev_ptr, p_size, resource) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsResourceGetMappedPointer_v2(p_dev_ptr: *mut u64, p_size: *mut usize, resource: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_RESOURCE_GET_MAPPED_POINTER_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, Handle) -> u32>(address)(p_dev_ptr, p_size, resource) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsResourceSetMapFlags(resource: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_RESOURCE_SET_MAP_FLAGS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(resource, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsResourceSetMapFlags_v2(resource: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_RESOURCE_SET_MAP_FLAGS_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(resource, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsSubResourceGetMappedArray(p_array: *mut Handle, resource: Handle, array_index: u32, mip_level: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_SUB_RESOURCE_GET_MAPPED_ARRAY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, u32, u32) -> u32>(address)(p_array, resource, array_index, mip_level) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsUnmapResources(count: u32, resources: *mut Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_UNMAP_RESOURCES) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut Handle, Handle) -> u32>(address)(count, resources, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsUnmapResources_ptsz(count: u32, resources: *mut Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_UNMAP_RESOURCES_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut Handle, Handle) -> u32>(address)(count, resources, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphicsUnregisterResource(resource: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPHICS_UNREGISTER_RESOURCE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(resource) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGreenCtxCreate(ph_ctx: *mut Handle, desc: Handle, dev: i32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GREEN_CTX_CREATE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, i32, u32) -> u32>(address)(ph_ctx, desc, dev, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGreenCtxDestroy(h_ctx: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::contexts::cuGreenCtxDestroy(ids::CU_GREEN_CTX_DESTROY, h_ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGreenCtxGetDevResource(h_ctx: Handle, resource: *mut c_void, type_: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_GREEN_CTX_GET_DEV_RESOURCE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void, u32) -> u32>(address)(h_ctx, resource, type_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGreenCtxGetId(green_ctx: Handle, green_ctx_id: *mut u64) -> u32 {
        let Some(address) = driver::address(ids::CU_GREEN_CTX_GET_ID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u64) -> u32>(address)(green_ctx, green_ctx_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGreenCtxRecordEvent(h_ctx: Handle, h_event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GREEN_CTX_RECORD_EVENT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_ctx, h_event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGreenCtxStreamCreate(ph_stream: *mut Handle, green_ctx: Handle, flags: u32, priority: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_GREEN_CTX_STREAM_CREATE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, u32, i32) -> u32>(address)(ph_stream, green_ctx, flags, priority) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGreenCtxWaitEvent(h_ctx: Handle, h_event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GREEN_CTX_WAIT_EVENT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_ctx, h_event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuImportExternalMemory(ext_mem_out: *mut Handle, mem_handle_desc: *const c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuImportExternalMemory(ids::CU_IMPORT_EXTERNAL_MEMORY, ext_mem_out, mem_handle_desc) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuImportExternalSemaphore(ext_sem_out: *mut Handle, sem_handle_desc: *const c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuImportExternalSemaphore(ids::CU_IMPORT_EXTERNAL_SEMAPHORE, ext_sem_out, sem_handle_desc) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuInit(flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::init::cuInit(ids::CU_INIT, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuIpcCloseMemHandle(dptr: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuIpcCloseMemHandle(ids::CU_IPC_CLOSE_MEM_HANDLE, dptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuIpcGetEventHandle(p_handle: *mut IpcHandle, event: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::events::cuIpcGetEventHandle(ids::CU_IPC_GET_EVENT_HANDLE, p_handle, event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuIpcGetMemHandle(p_handle: *mut IpcHandle, dptr: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuIpcGetMemHandle(ids::CU_IPC_GET_MEM_HANDLE, p_handle, dptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuIpcOpenEventHandle(ph_event: *mut Handle, handle: IpcHandle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::events::cuIpcOpenEventHandle(ids::CU_IPC_OPEN_EVENT_HANDLE, ph_event, handle) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuIpcOpenMemHandle(pdptr: *mut u64, handle: IpcHandle, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuIpcOpenMemHandle(ids::CU_IPC_OPEN_MEM_HANDLE, pdptr, handle, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuIpcOpenMemHandle_v2(pdptr: *mut u64, handle: IpcHandle, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuIpcOpenMemHandle_v2(ids::CU_IPC_OPEN_MEM_HANDLE_V2, pdptr, handle, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuKernelGetAttribute(pi: *mut i32, attrib: u32, kernel: Handle, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_KERNEL_GET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, u32, Handle, i32) -> u32>(address)(pi, attrib, kernel, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuKernelGetFunction(p_func: *mut Handle, kernel: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_KERNEL_GET_FUNCTION) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle) -> u32>(address)(p_func, kernel) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuKernelGetLibrary(p_lib: *mut Handle, kernel: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_KERNEL_GET_LIBRARY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle) -> u32>(address)(p_lib, kernel) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuKernelGetName(name: *mut *const std::ffi::c_char, hfunc: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_KERNEL_GET_NAME) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut *const std::ffi::c_char, Handle) -> u32>(address)(name, hfunc) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuKernelGetParamCount(kernel: Handle, param_count: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_KERNEL_GET_PARAM_COUNT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut usize) -> u32>(address)(kernel, param_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuKernelGetParamInfo(kernel: Handle, param_index: usize, param_offset: *mut usize, param_size: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_KERNEL_GET_PARAM_INFO) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> u32>(address)(kernel, param_index, param_offset, param_size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuKernelSetAttribute(attrib: u32, val: i32, kernel: Handle, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_KERNEL_SET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, i32, Handle, i32) -> u32>(address)(attrib, val, kernel, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuKernelSetCacheConfig(kernel: Handle, config: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_KERNEL_SET_CACHE_CONFIG) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, i32) -> u32>(address)(kernel, config, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunch(f: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(f) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchCooperativeKernel(f: Handle, grid_dim_x: u32, grid_dim_y: u32, grid_dim_z: u32, block_dim_x: u32, block_dim_y: u32, block_dim_z: u32, shared_mem_bytes: u32, h_stream: Handle, kernel_params: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_COOPERATIVE_KERNEL) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void) -> u32>(address)(f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, shared_mem_bytes, h_stream, kernel_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchCooperativeKernelMultiDevice(launch_params_list: *mut c_void, num_devices: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_COOPERATIVE_KERNEL_MULTI_DEVICE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, u32) -> u32>(address)(launch_params_list, num_devices, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchCooperativeKernel_ptsz(f: Handle, grid_dim_x: u32, grid_dim_y: u32, grid_dim_z: u32, block_dim_x: u32, block_dim_y: u32, block_dim_z: u32, shared_mem_bytes: u32, h_stream: Handle, kernel_params: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_COOPERATIVE_KERNEL_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void) -> u32>(address)(f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, shared_mem_bytes, h_stream, kernel_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchGrid(f: Handle, grid_width: i32, grid_height: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_GRID) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, i32, i32) -> u32>(address)(f, grid_width, grid_height) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchGridAsync(f: Handle, grid_width: i32, grid_height: i32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_GRID_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, i32, i32, Handle) -> u32>(address)(f, grid_width, grid_height, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchHostFunc(h_stream: Handle, fn_: Handle, user_data: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_HOST_FUNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut c_void) -> u32>(address)(h_stream, fn_, user_data) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchHostFunc_ptsz(h_stream: Handle, fn_: Handle, user_data: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_HOST_FUNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut c_void) -> u32>(address)(h_stream, fn_, user_data) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchHostFunc_v2(h_stream: Handle, fn_: Handle, user_data: *mut c_void, sync_mode: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_HOST_FUNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut c_void, u32) -> u32>(address)(h_stream, fn_, user_data, sync_mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchHostFunc_v2_ptsz(h_stream: Handle, fn_: Handle, user_data: *mut c_void, sync_mode: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_HOST_FUNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut c_void, u32) -> u32>(address)(h_stream, fn_, user_data, sync_mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchKernel(f: Handle, grid_dim_x: u32, grid_dim_y: u32, grid_dim_z: u32, block_dim_x: u32, block_dim_y: u32, block_dim_z: u32, shared_mem_bytes: u32, h_stream: Handle, kernel_params: *mut *mut c_void, extra: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_KERNEL) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void, *mut *mut c_void) -> u32>(address)(f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, shared_mem_bytes, h_stream, kernel_params, extra) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchKernelEx(config: *const c_void, f: Handle, kernel_params: *mut *mut c_void, extra: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_KERNEL_EX) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, Handle, *mut *mut c_void, *mut *mut c_void) -> u32>(address)(config, f, kernel_params, extra) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchKernelEx_ptsz(config: *const c_void, f: Handle, kernel_params: *mut *mut c_void, extra: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_KERNEL_EX_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, Handle, *mut *mut c_void, *mut *mut c_void) -> u32>(address)(config, f, kernel_params, extra) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLaunchKernel_ptsz(f: Handle, grid_dim_x: u32, grid_dim_y: u32, grid_dim_z: u32, block_dim_x: u32, block_dim_y: u32, block_dim_z: u32, shared_mem_bytes: u32, h_stream: Handle, kernel_params: *mut *mut c_void, extra: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LAUNCH_KERNEL_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, u32, u32, u32, u32, u32, u32, Handle, *mut *mut c_void, *mut *mut c_void) -> u32>(address)(f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y, block_dim_z, shared_mem_bytes, h_stream, kernel_params, extra) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLibraryEnumerateKernels(kernels: *mut Handle, num_kernels: u32, lib: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LIBRARY_ENUMERATE_KERNELS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, u32, Handle) -> u32>(address)(kernels, num_kernels, lib) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLibraryGetGlobal(dptr: *mut u64, bytes: *mut usize, library: Handle, name: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_LIBRARY_GET_GLOBAL) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, Handle, *const std::ffi::c_char) -> u32>(address)(dptr, bytes, library, name) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLibraryGetKernel(p_kernel: *mut Handle, library: Handle, name: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_LIBRARY_GET_KERNEL) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const std::ffi::c_char) -> u32>(address)(p_kernel, library, name) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLibraryGetKernelCount(count: *mut u32, lib: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LIBRARY_GET_KERNEL_COUNT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, Handle) -> u32>(address)(count, lib) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLibraryGetManaged(dptr: *mut u64, bytes: *mut usize, library: Handle, name: *const std::ffi::c_char) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuLibraryGetManaged(ids::CU_LIBRARY_GET_MANAGED, dptr, bytes, library, name) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLibraryGetModule(p_mod: *mut Handle, library: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LIBRARY_GET_MODULE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle) -> u32>(address)(p_mod, library) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLibraryGetUnifiedFunction(fptr: *mut *mut c_void, library: Handle, symbol: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_LIBRARY_GET_UNIFIED_FUNCTION) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut *mut c_void, Handle, *const std::ffi::c_char) -> u32>(address)(fptr, library, symbol) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLibraryLoadData(library: *mut Handle, code: *const c_void, jit_options: *mut u32, jit_options_values: *mut *mut c_void, num_jit_options: u32, library_options: *mut u32, library_option_values: *mut *mut c_void, num_library_options: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LIBRARY_LOAD_DATA) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void, *mut u32, *mut *mut c_void, u32, *mut u32, *mut *mut c_void, u32) -> u32>(address)(library, code, jit_options, jit_options_values, num_jit_options, library_options, library_option_values, num_library_options) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLibraryLoadFromFile(library: *mut Handle, file_name: *const std::ffi::c_char, jit_options: *mut u32, jit_options_values: *mut *mut c_void, num_jit_options: u32, library_options: *mut u32, library_option_values: *mut *mut c_void, num_library_options: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LIBRARY_LOAD_FROM_FILE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const std::ffi::c_char, *mut u32, *mut *mut c_void, u32, *mut u32, *mut *mut c_void, u32) -> u32>(address)(library, file_name, jit_options, jit_options_values, num_jit_options, library_options, library_option_values, num_library_options) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLibraryUnload(library: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LIBRARY_UNLOAD) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(library) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLinkAddData(state: Handle, type_: u32, data: *mut c_void, size: usize, name: *const std::ffi::c_char, num_options: u32, options: *mut u32, option_values: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LINK_ADD_DATA) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void, usize, *const std::ffi::c_char, u32, *mut u32, *mut *mut c_void) -> u32>(address)(state, type_, data, size, name, num_options, options, option_values) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLinkAddData_v2(state: Handle, type_: u32, data: *mut c_void, size: usize, name: *const std::ffi::c_char, num_options: u32, options: *mut u32, option_values: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LINK_ADD_DATA_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void, usize, *const std::ffi::c_char, u32, *mut u32, *mut *mut c_void) -> u32>(address)(state, type_, data, size, name, num_options, options, option_values) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLinkAddFile(state: Handle, type_: u32, path: *const std::ffi::c_char, num_options: u32, options: *mut u32, option_values: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LINK_ADD_FILE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *const std::ffi::c_char, u32, *mut u32, *mut *mut c_void) -> u32>(address)(state, type_, path, num_options, options, option_values) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLinkAddFile_v2(state: Handle, type_: u32, path: *const std::ffi::c_char, num_options: u32, options: *mut u32, option_values: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LINK_ADD_FILE_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *const std::ffi::c_char, u32, *mut u32, *mut *mut c_void) -> u32>(address)(state, type_, path, num_options, options, option_values) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLinkComplete(state: Handle, cubin_out: *mut *mut c_void, size_out: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_LINK_COMPLETE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut *mut c_void, *mut usize) -> u32>(address)(state, cubin_out, size_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLinkCreate(num_options: u32, options: *mut u32, option_values: *mut *mut c_void, state_out: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LINK_CREATE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut u32, *mut *mut c_void, *mut Handle) -> u32>(address)(num_options, options, option_values, state_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLinkCreate_v2(num_options: u32, options: *mut u32, option_values: *mut *mut c_void, state_out: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LINK_CREATE_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *mut u32, *mut *mut c_void, *mut Handle) -> u32>(address)(num_options, options, option_values, state_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLinkDestroy(state: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LINK_DESTROY) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(state) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointAddDevice(le_id: u32, dev: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGICAL_ENDPOINT_ADD_DEVICE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, i32) -> u32>(address)(le_id, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointBindAddr(le_id: u32, dev: i32, offset: u64, ptr: *mut c_void, size: u64, flags: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGICAL_ENDPOINT_BIND_ADDR) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, i32, u64, *mut c_void, u64, u64) -> u32>(address)(le_id, dev, offset, ptr, size, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointBindMem(le_id: u32, dev: i32, offset: u64, mem_handle: u64, mem_offset: u64, size: u64, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuLogicalEndpointBindMem(ids::CU_LOGICAL_ENDPOINT_BIND_MEM, le_id, dev, offset, mem_handle, mem_offset, size, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointCreate(le_id: u32, prop: *const c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuLogicalEndpointCreate(ids::CU_LOGICAL_ENDPOINT_CREATE, le_id, prop) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointDestroy(le_id: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuLogicalEndpointDestroy(ids::CU_LOGICAL_ENDPOINT_DESTROY, le_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointExport(handle: *mut c_void, le_id: u32, handle_type: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGICAL_ENDPOINT_EXPORT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, u32) -> u32>(address)(handle, le_id, handle_type) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointGetLimits(bind_alignment: *mut u64, max_size: *mut u64, prop: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGICAL_ENDPOINT_GET_LIMITS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut u64, *const c_void) -> u32>(address)(bind_alignment, max_size, prop) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointIdRelease(base_le_id: u32, count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGICAL_ENDPOINT_ID_RELEASE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u32) -> u32>(address)(base_le_id, count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointIdReserve(base_le_id: *mut u32, count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGICAL_ENDPOINT_ID_RESERVE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, u32) -> u32>(address)(base_le_id, count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointImport(le_id: u32, handle: *const c_void, handle_type: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuLogicalEndpointImport(ids::CU_LOGICAL_ENDPOINT_IMPORT, le_id, handle, handle_type) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointQuery(le_id: u32, count: u32, query_status: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGICAL_ENDPOINT_QUERY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u32, *mut i32) -> u32>(address)(le_id, count, query_status) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogicalEndpointUnbind(le_id: u32, dev: i32, offset: u64, size: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGICAL_ENDPOINT_UNBIND) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, i32, u64, u64) -> u32>(address)(le_id, dev, offset, size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogsCurrent(iterator_out: *mut u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGS_CURRENT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, u32) -> u32>(address)(iterator_out, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogsDumpToFile(iterator: *mut u32, path_to_file: *const std::ffi::c_char, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGS_DUMP_TO_FILE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *const std::ffi::c_char, u32) -> u32>(address)(iterator, path_to_file, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogsDumpToMemory(iterator: *mut u32, buffer: *mut std::ffi::c_char, size: *mut usize, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGS_DUMP_TO_MEMORY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *mut std::ffi::c_char, *mut usize, u32) -> u32>(address)(iterator, buffer, size, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogsRegisterCallback(callback_func: Handle, user_data: *mut c_void, callback_out: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGS_REGISTER_CALLBACK) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void, *mut Handle) -> u32>(address)(callback_func, user_data, callback_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuLogsUnregisterCallback(callback: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_LOGS_UNREGISTER_CALLBACK) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(callback) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAddressFree(ptr: u64, size: usize) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemAddressFree(ids::CU_MEM_ADDRESS_FREE, ptr, size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAddressReserve(ptr: *mut u64, size: usize, alignment: usize, addr: u64, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemAddressReserve(ids::CU_MEM_ADDRESS_RESERVE, ptr, size, alignment, addr, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAdvise(dev_ptr: u64, count: usize, advice: u32, device: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_ADVISE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u32, i32) -> u32>(address)(dev_ptr, count, advice, device) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAdvise_v2(dev_ptr: u64, count: usize, advice: u32, location: MemLocation) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_ADVISE_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u32, MemLocation) -> u32>(address)(dev_ptr, count, advice, location) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAlloc(dptr: *mut u32, bytesize: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_ALLOC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, u32) -> u32>(address)(dptr, bytesize) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAllocAsync(dptr: *mut u64, bytesize: usize, h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::native::cuMemAllocAsync(ids::CU_MEM_ALLOC_ASYNC, dptr, bytesize, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAllocAsync_ptsz(dptr: *mut u64, bytesize: usize, h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::native::cuMemAllocAsync(ids::CU_MEM_ALLOC_ASYNC_PTSZ, dptr, bytesize, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAllocFromPoolAsync(dptr: *mut u64, bytesize: usize, pool: Handle, h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::native::cuMemAllocFromPoolAsync(ids::CU_MEM_ALLOC_FROM_POOL_ASYNC, dptr, bytesize, pool, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAllocFromPoolAsync_ptsz(dptr: *mut u64, bytesize: usize, pool: Handle, h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::native::cuMemAllocFromPoolAsync(ids::CU_MEM_ALLOC_FROM_POOL_ASYNC_PTSZ, dptr, bytesize, pool, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAllocHost(pp: *mut *mut c_void, bytesize: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_ALLOC_HOST) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut *mut c_void, u32) -> u32>(address)(pp, bytesize) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAllocHost_v2(pp: *mut *mut c_void, bytesize: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_ALLOC_HOST_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut *mut c_void, usize) -> u32>(address)(pp, bytesize) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAllocManaged(dptr: *mut u64, bytesize: usize, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::native::cuMemAllocManaged(ids::CU_MEM_ALLOC_MANAGED, dptr, bytesize, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAllocPitch(dptr: *mut u32, p_pitch: *mut u32, width_in_bytes: u32, height: u32, element_size_bytes: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_ALLOC_PITCH) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *mut u32, u32, u32, u32) -> u32>(address)(dptr, p_pitch, width_in_bytes, height, element_size_bytes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAllocPitch_v2(dptr: *mut u64, p_pitch: *mut usize, width_in_bytes: usize, height: usize, element_size_bytes: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::plain::cuMemAllocPitch_v2(ids::CU_MEM_ALLOC_PITCH_V2, dptr, p_pitch, width_in_bytes, height, element_size_bytes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemAlloc_v2(dptr: *mut u64, bytesize: usize) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::plain::cuMemAlloc_v2(ids::CU_MEM_ALLOC_V2, dptr, bytesize) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemBatchDecompressAsync(params_array: *mut c_void, count: usize, flags: u32, error_index: *mut usize, stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_BATCH_DECOMPRESS_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, usize, u32, *mut usize, Handle) -> u32>(address)(params_array, count, flags, error_index, stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemBatchDecompressAsync_ptsz(params_array: *mut c_void, count: usize, flags: u32, error_index: *mut usize, stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_BATCH_DECOMPRESS_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, usize, u32, *mut usize, Handle) -> u32>(address)(params_array, count, flags, error_index, stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemCreate(handle: *mut u64, size: usize, prop: *const c_void, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemCreate(ids::CU_MEM_CREATE, handle, size, prop, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemDiscardAndPrefetchBatchAsync(dptrs: *mut u64, sizes: *mut usize, count: usize, prefetch_locs: *mut MemLocation, prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_DISCARD_AND_PREFETCH_BATCH_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, usize, *mut MemLocation, *mut usize, usize, u64, Handle) -> u32>(address)(dptrs, sizes, count, prefetch_locs, prefetch_loc_idxs, num_prefetch_locs, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemDiscardAndPrefetchBatchAsync_ptsz(dptrs: *mut u64, sizes: *mut usize, count: usize, prefetch_locs: *mut MemLocation, prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_DISCARD_AND_PREFETCH_BATCH_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, usize, *mut MemLocation, *mut usize, usize, u64, Handle) -> u32>(address)(dptrs, sizes, count, prefetch_locs, prefetch_loc_idxs, num_prefetch_locs, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemDiscardBatchAsync(dptrs: *mut u64, sizes: *mut usize, count: usize, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_DISCARD_BATCH_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, usize, u64, Handle) -> u32>(address)(dptrs, sizes, count, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemDiscardBatchAsync_ptsz(dptrs: *mut u64, sizes: *mut usize, count: usize, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_DISCARD_BATCH_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, usize, u64, Handle) -> u32>(address)(dptrs, sizes, count, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemExportToShareableHandle(shareable_handle: *mut c_void, handle: u64, handle_type: u32, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::share::cuMemExportToShareableHandle(ids::CU_MEM_EXPORT_TO_SHAREABLE_HANDLE, shareable_handle, handle, handle_type, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemFree(dptr: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_FREE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32) -> u32>(address)(dptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemFreeAsync(dptr: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_FREE_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, Handle) -> u32>(address)(dptr, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemFreeAsync_ptsz(dptr: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_FREE_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, Handle) -> u32>(address)(dptr, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemFreeHost(p: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::host::cuMemFreeHost(ids::CU_MEM_FREE_HOST, p) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemFree_v2(dptr: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::plain::cuMemFree_v2(ids::CU_MEM_FREE_V2, dptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetAccess(flags: *mut u64, location: *const MemLocation, ptr: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_GET_ACCESS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *const MemLocation, u64) -> u32>(address)(flags, location, ptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetAddressRange(pbase: *mut u32, psize: *mut u32, dptr: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_GET_ADDRESS_RANGE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *mut u32, u32) -> u32>(address)(pbase, psize, dptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetAddressRange_v2(pbase: *mut u64, psize: *mut usize, dptr: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::pointers::cuMemGetAddressRange_v2(ids::CU_MEM_GET_ADDRESS_RANGE_V2, pbase, psize, dptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetAllocationGranularity(granularity: *mut usize, prop: *const c_void, option: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_GET_ALLOCATION_GRANULARITY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, *const c_void, u32) -> u32>(address)(granularity, prop, option) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetAllocationPropertiesFromHandle(prop: *mut c_void, handle: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemGetAllocationPropertiesFromHandle(ids::CU_MEM_GET_ALLOCATION_PROPERTIES_FROM_HANDLE, prop, handle) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetDefaultMemPool(pool_out: *mut Handle, location: *mut MemLocation, type_: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_GET_DEFAULT_MEM_POOL) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *mut MemLocation, u32) -> u32>(address)(pool_out, location, type_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetHandleForAddressRange(handle: *mut c_void, dptr: u64, size: usize, handle_type: u32, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuMemGetHandleForAddressRange(ids::CU_MEM_GET_HANDLE_FOR_ADDRESS_RANGE, handle, dptr, size, handle_type, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetInfo(free: *mut u32, total: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_GET_INFO) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *mut u32) -> u32>(address)(free, total) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_GET_INFO_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, *mut usize) -> u32>(address)(free, total) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetLocationInfo(ptr: u64, size: usize, summary_granularity: usize, sampling_granularity: usize, location_out: *mut MemLocation) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_GET_LOCATION_INFO) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, usize, usize, *mut MemLocation) -> u32>(address)(ptr, size, summary_granularity, sampling_granularity, location_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemGetMemPool(pool: *mut Handle, location: *mut MemLocation, type_: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_GET_MEM_POOL) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *mut MemLocation, u32) -> u32>(address)(pool, location, type_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemHostAlloc(pp: *mut *mut c_void, bytesize: usize, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::host::cuMemHostAlloc(ids::CU_MEM_HOST_ALLOC, pp, bytesize, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemHostGetDevicePointer(pdptr: *mut u32, p: *mut c_void, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_HOST_GET_DEVICE_POINTER) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *mut c_void, u32) -> u32>(address)(pdptr, p, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemHostGetDevicePointer_v2(pdptr: *mut u64, p: *mut c_void, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_HOST_GET_DEVICE_POINTER_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut c_void, u32) -> u32>(address)(pdptr, p, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemHostGetFlags(p_flags: *mut u32, p: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::host::cuMemHostGetFlags(ids::CU_MEM_HOST_GET_FLAGS, p_flags, p) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemHostRegister(p: *mut c_void, bytesize: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_HOST_REGISTER) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, usize, u32) -> u32>(address)(p, bytesize, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemHostRegister_v2(p: *mut c_void, bytesize: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_HOST_REGISTER_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, usize, u32) -> u32>(address)(p, bytesize, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemHostUnregister(p: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_HOST_UNREGISTER) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void) -> u32>(address)(p) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemImportFromShareableHandle(handle: *mut u64, os_handle: *mut c_void, sh_handle_type: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::share::cuMemImportFromShareableHandle(ids::CU_MEM_IMPORT_FROM_SHAREABLE_HANDLE, handle, os_handle, sh_handle_type) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemMap(ptr: u64, size: usize, offset: usize, handle: u64, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemMap(ids::CU_MEM_MAP, ptr, size, offset, handle, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemMapArrayAsync(map_info_list: *mut c_void, count: u32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_MAP_ARRAY_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, Handle) -> u32>(address)(map_info_list, count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemMapArrayAsync_ptsz(map_info_list: *mut c_void, count: u32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_MAP_ARRAY_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, Handle) -> u32>(address)(map_info_list, count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolCreate(pool: *mut Handle, pool_props: *const c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::native::cuMemPoolCreate(ids::CU_MEM_POOL_CREATE, pool, pool_props) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolDestroy(pool: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::native::cuMemPoolDestroy(ids::CU_MEM_POOL_DESTROY, pool) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolExportPointer(share_data_out: *mut c_void, ptr: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuMemPoolExportPointer(ids::CU_MEM_POOL_EXPORT_POINTER, share_data_out, ptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolExportToShareableHandle(handle_out: *mut c_void, pool: Handle, handle_type: u32, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuMemPoolExportToShareableHandle(ids::CU_MEM_POOL_EXPORT_TO_SHAREABLE_HANDLE, handle_out, pool, handle_type, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolGetAccess(flags: *mut u32, mem_pool: Handle, location: *mut MemLocation) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_POOL_GET_ACCESS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, Handle, *mut MemLocation) -> u32>(address)(flags, mem_pool, location) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolGetAttribute(pool: Handle, attr: u32, value: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_POOL_GET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void) -> u32>(address)(pool, attr, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolImportFromShareableHandle(pool_out: *mut Handle, handle: *mut c_void, handle_type: u32, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuMemPoolImportFromShareableHandle(ids::CU_MEM_POOL_IMPORT_FROM_SHAREABLE_HANDLE, pool_out, handle, handle_type, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolImportPointer(ptr_out: *mut u64, pool: Handle, share_data: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuMemPoolImportPointer(ids::CU_MEM_POOL_IMPORT_POINTER, ptr_out, pool, share_data) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolSetAccess(pool: Handle, map: *const c_void, count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_POOL_SET_ACCESS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void, usize) -> u32>(address)(pool, map, count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolSetAttribute(pool: Handle, attr: u32, value: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_POOL_SET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void) -> u32>(address)(pool, attr, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPoolTrimTo(pool: Handle, min_bytes_to_keep: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_POOL_TRIM_TO) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize) -> u32>(address)(pool, min_bytes_to_keep) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPrefetchAsync(dev_ptr: u64, count: usize, dst_device: i32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_PREFETCH_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, i32, Handle) -> u32>(address)(dev_ptr, count, dst_device, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPrefetchAsync_ptsz(dev_ptr: u64, count: usize, dst_device: i32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_PREFETCH_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, i32, Handle) -> u32>(address)(dev_ptr, count, dst_device, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPrefetchAsync_v2(dev_ptr: u64, count: usize, location: MemLocation, flags: u32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_PREFETCH_ASYNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, MemLocation, u32, Handle) -> u32>(address)(dev_ptr, count, location, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPrefetchAsync_v2_ptsz(dev_ptr: u64, count: usize, location: MemLocation, flags: u32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_PREFETCH_ASYNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, MemLocation, u32, Handle) -> u32>(address)(dev_ptr, count, location, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPrefetchBatchAsync(dptrs: *mut u64, sizes: *mut usize, count: usize, prefetch_locs: *mut MemLocation, prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_PREFETCH_BATCH_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, usize, *mut MemLocation, *mut usize, usize, u64, Handle) -> u32>(address)(dptrs, sizes, count, prefetch_locs, prefetch_loc_idxs, num_prefetch_locs, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemPrefetchBatchAsync_ptsz(dptrs: *mut u64, sizes: *mut usize, count: usize, prefetch_locs: *mut MemLocation, prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_PREFETCH_BATCH_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, usize, *mut MemLocation, *mut usize, usize, u64, Handle) -> u32>(address)(dptrs, sizes, count, prefetch_locs, prefetch_loc_idxs, num_prefetch_locs, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemRangeGetAttribute(data: *mut c_void, data_size: usize, attribute: u32, dev_ptr: u64, count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_RANGE_GET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, usize, u32, u64, usize) -> u32>(address)(data, data_size, attribute, dev_ptr, count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemRangeGetAttributes(data: *mut *mut c_void, data_sizes: *mut usize, attributes: *mut u32, num_attributes: usize, dev_ptr: u64, count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_RANGE_GET_ATTRIBUTES) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut *mut c_void, *mut usize, *mut u32, usize, u64, usize) -> u32>(address)(data, data_sizes, attributes, num_attributes, dev_ptr, count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemRelease(handle: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemRelease(ids::CU_MEM_RELEASE, handle) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemRetainAllocationHandle(handle: *mut u64, addr: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemRetainAllocationHandle(ids::CU_MEM_RETAIN_ALLOCATION_HANDLE, handle, addr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemSetAccess(ptr: u64, size: usize, desc: *const c_void, count: usize) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemSetAccess(ids::CU_MEM_SET_ACCESS, ptr, size, desc, count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemSetMemPool(location: *mut MemLocation, type_: u32, pool: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEM_SET_MEM_POOL) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut MemLocation, u32, Handle) -> u32>(address)(location, type_, pool) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemUnmap(ptr: u64, size: usize) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemUnmap(ids::CU_MEM_UNMAP, ptr, size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy(dst: u64, src: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY) else { return driver::missing() };
        let inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize) -> u32>(address)(dst, src, byte_count) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy2D(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY2_D) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy2DAsync(p_copy: *const c_void, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY2_DASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, Handle) -> u32>(address)(p_copy, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy2DAsync_v2(p_copy: *const c_void, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY2_DASYNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, Handle) -> u32>(address)(p_copy, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy2DAsync_v2_ptsz(p_copy: *const c_void, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY2_DASYNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, Handle) -> u32>(address)(p_copy, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy2DUnaligned(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY2_DUNALIGNED) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy2DUnaligned_v2(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY2_DUNALIGNED_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy2DUnaligned_v2_ptds(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY2_DUNALIGNED_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy2D_v2(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY2_D_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy2D_v2_ptds(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY2_D_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3D(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_D) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DAsync(p_copy: *const c_void, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, Handle) -> u32>(address)(p_copy, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DAsync_v2(p_copy: *const c_void, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DASYNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, Handle) -> u32>(address)(p_copy, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DAsync_v2_ptsz(p_copy: *const c_void, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DASYNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, Handle) -> u32>(address)(p_copy, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DBatchAsync(num_ops: usize, op_list: *mut c_void, fail_idx: *mut usize, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DBATCH_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(usize, *mut c_void, *mut usize, u64, Handle) -> u32>(address)(num_ops, op_list, fail_idx, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DBatchAsync_ptsz(num_ops: usize, op_list: *mut c_void, fail_idx: *mut usize, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DBATCH_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(usize, *mut c_void, *mut usize, u64, Handle) -> u32>(address)(num_ops, op_list, fail_idx, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DBatchAsync_v2(num_ops: usize, op_list: *mut c_void, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DBATCH_ASYNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(usize, *mut c_void, u64, Handle) -> u32>(address)(num_ops, op_list, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DBatchAsync_v2_ptsz(num_ops: usize, op_list: *mut c_void, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DBATCH_ASYNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(usize, *mut c_void, u64, Handle) -> u32>(address)(num_ops, op_list, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DPeer(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DPEER) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DPeerAsync(p_copy: *const c_void, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DPEER_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, Handle) -> u32>(address)(p_copy, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DPeerAsync_ptsz(p_copy: *const c_void, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DPEER_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, Handle) -> u32>(address)(p_copy, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DPeer_ptds(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DPEER_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DWithAttributesAsync(op: *mut c_void, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DWITH_ATTRIBUTES_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, Handle) -> u32>(address)(op, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3DWithAttributesAsync_ptsz(op: *mut c_void, flags: u64, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_DWITH_ATTRIBUTES_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, Handle) -> u32>(address)(op, flags, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3D_v2(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_D_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy3D_v2_ptds(p_copy: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY3_D_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void) -> u32>(address)(p_copy) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAsync(dst: u64, src: u64, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize, Handle) -> u32>(address)(dst, src, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAsync_ptsz(dst: u64, src: u64, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize, Handle) -> u32>(address)(dst, src, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoA(dst_array: Handle, dst_offset: u32, src_array: Handle, src_offset: u32, byte_count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_A) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, Handle, u32, u32) -> u32>(address)(dst_array, dst_offset, src_array, src_offset, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoA_v2(dst_array: Handle, dst_offset: usize, src_array: Handle, src_offset: usize, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_A_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize, Handle, usize, usize) -> u32>(address)(dst_array, dst_offset, src_array, src_offset, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoA_v2_ptds(dst_array: Handle, dst_offset: usize, src_array: Handle, src_offset: usize, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_A_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize, Handle, usize, usize) -> u32>(address)(dst_array, dst_offset, src_array, src_offset, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoD(dst_device: u32, src_array: Handle, src_offset: u32, byte_count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_D) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, Handle, u32, u32) -> u32>(address)(dst_device, src_array, src_offset, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoD_v2(dst_device: u64, src_array: Handle, src_offset: usize, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_D_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, Handle, usize, usize) -> u32>(address)(dst_device, src_array, src_offset, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoD_v2_ptds(dst_device: u64, src_array: Handle, src_offset: usize, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_D_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, Handle, usize, usize) -> u32>(address)(dst_device, src_array, src_offset, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoH(dst_host: *mut c_void, src_array: Handle, src_offset: u32, byte_count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_H) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle, u32, u32) -> u32>(address)(dst_host, src_array, src_offset, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoHAsync(dst_host: *mut c_void, src_array: Handle, src_offset: u32, byte_count: u32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_HASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle, u32, u32, Handle) -> u32>(address)(dst_host, src_array, src_offset, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoHAsync_v2(dst_host: *mut c_void, src_array: Handle, src_offset: usize, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_HASYNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle, usize, usize, Handle) -> u32>(address)(dst_host, src_array, src_offset, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoHAsync_v2_ptsz(dst_host: *mut c_void, src_array: Handle, src_offset: usize, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_HASYNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle, usize, usize, Handle) -> u32>(address)(dst_host, src_array, src_offset, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoH_v2(dst_host: *mut c_void, src_array: Handle, src_offset: usize, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_H_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle, usize, usize) -> u32>(address)(dst_host, src_array, src_offset, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyAtoH_v2_ptds(dst_host: *mut c_void, src_array: Handle, src_offset: usize, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_ATO_H_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle, usize, usize) -> u32>(address)(dst_host, src_array, src_offset, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyBatchAsync(dsts: *mut u64, srcs: *mut u64, sizes: *mut usize, count: usize, attrs: *mut c_void, attrs_idxs: *mut usize, num_attrs: usize, fail_idx: *mut usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_BATCH_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut u64, *mut usize, usize, *mut c_void, *mut usize, usize, *mut usize, Handle) -> u32>(address)(dsts, srcs, sizes, count, attrs, attrs_idxs, num_attrs, fail_idx, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyBatchAsync_ptsz(dsts: *mut u64, srcs: *mut u64, sizes: *mut usize, count: usize, attrs: *mut c_void, attrs_idxs: *mut usize, num_attrs: usize, fail_idx: *mut usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_BATCH_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut u64, *mut usize, usize, *mut c_void, *mut usize, usize, *mut usize, Handle) -> u32>(address)(dsts, srcs, sizes, count, attrs, attrs_idxs, num_attrs, fail_idx, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyBatchAsync_v2(dsts: *mut u64, srcs: *mut u64, sizes: *mut usize, count: usize, attrs: *mut c_void, attrs_idxs: *mut usize, num_attrs: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_BATCH_ASYNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut u64, *mut usize, usize, *mut c_void, *mut usize, usize, Handle) -> u32>(address)(dsts, srcs, sizes, count, attrs, attrs_idxs, num_attrs, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyBatchAsync_v2_ptsz(dsts: *mut u64, srcs: *mut u64, sizes: *mut usize, count: usize, attrs: *mut c_void, attrs_idxs: *mut usize, num_attrs: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_BATCH_ASYNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut u64, *mut usize, usize, *mut c_void, *mut usize, usize, Handle) -> u32>(address)(dsts, srcs, sizes, count, attrs, attrs_idxs, num_attrs, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoA(dst_array: Handle, dst_offset: u32, src_device: u32, byte_count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_A) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, u32, u32) -> u32>(address)(dst_array, dst_offset, src_device, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoA_v2(dst_array: Handle, dst_offset: usize, src_device: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_A_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize, u64, usize) -> u32>(address)(dst_array, dst_offset, src_device, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoA_v2_ptds(dst_array: Handle, dst_offset: usize, src_device: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_A_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize, u64, usize) -> u32>(address)(dst_array, dst_offset, src_device, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoD(dst_device: u32, src_device: u32, byte_count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_D) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u32, u32) -> u32>(address)(dst_device, src_device, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoDAsync(dst_device: u32, src_device: u32, byte_count: u32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_DASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u32, u32, Handle) -> u32>(address)(dst_device, src_device, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoDAsync_v2(dst_device: u64, src_device: u64, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_DASYNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize, Handle) -> u32>(address)(dst_device, src_device, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoDAsync_v2_ptsz(dst_device: u64, src_device: u64, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_DASYNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize, Handle) -> u32>(address)(dst_device, src_device, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoD_v2(dst_device: u64, src_device: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_D_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize) -> u32>(address)(dst_device, src_device, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoD_v2_ptds(dst_device: u64, src_device: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_D_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize) -> u32>(address)(dst_device, src_device, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoH(dst_host: *mut c_void, src_device: u32, byte_count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_H) else { return driver::missing() };
        let inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, u32) -> u32>(address)(dst_host, src_device, byte_count) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoHAsync(dst_host: *mut c_void, src_device: u32, byte_count: u32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_HASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, u32, Handle) -> u32>(address)(dst_host, src_device, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(dst_host: *mut c_void, src_device: u64, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_HASYNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, usize, Handle) -> u32>(address)(dst_host, src_device, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2_ptsz(dst_host: *mut c_void, src_device: u64, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_HASYNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, usize, Handle) -> u32>(address)(dst_host, src_device, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoH_v2(dst_host: *mut c_void, src_device: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_H_V2) else { return driver::missing() };
        let inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, usize) -> u32>(address)(dst_host, src_device, byte_count) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoH_v2_ptds(dst_host: *mut c_void, src_device: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_H_V2_PTDS) else { return driver::missing() };
        let inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, usize) -> u32>(address)(dst_host, src_device, byte_count) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoA(dst_array: Handle, dst_offset: u32, src_host: *const c_void, byte_count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_A) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *const c_void, u32) -> u32>(address)(dst_array, dst_offset, src_host, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoAAsync(dst_array: Handle, dst_offset: u32, src_host: *const c_void, byte_count: u32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_AASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *const c_void, u32, Handle) -> u32>(address)(dst_array, dst_offset, src_host, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoAAsync_v2(dst_array: Handle, dst_offset: usize, src_host: *const c_void, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_AASYNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize, *const c_void, usize, Handle) -> u32>(address)(dst_array, dst_offset, src_host, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoAAsync_v2_ptsz(dst_array: Handle, dst_offset: usize, src_host: *const c_void, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_AASYNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize, *const c_void, usize, Handle) -> u32>(address)(dst_array, dst_offset, src_host, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoA_v2(dst_array: Handle, dst_offset: usize, src_host: *const c_void, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_A_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize, *const c_void, usize) -> u32>(address)(dst_array, dst_offset, src_host, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoA_v2_ptds(dst_array: Handle, dst_offset: usize, src_host: *const c_void, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_A_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, usize, *const c_void, usize) -> u32>(address)(dst_array, dst_offset, src_host, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoD(dst_device: u32, src_host: *const c_void, byte_count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_D) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *const c_void, u32) -> u32>(address)(dst_device, src_host, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoDAsync(dst_device: u32, src_host: *const c_void, byte_count: u32, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_DASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, *const c_void, u32, Handle) -> u32>(address)(dst_device, src_host, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(dst_device: u64, src_host: *const c_void, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_DASYNC_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, *const c_void, usize, Handle) -> u32>(address)(dst_device, src_host, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2_ptsz(dst_device: u64, src_host: *const c_void, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_DASYNC_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, *const c_void, usize, Handle) -> u32>(address)(dst_device, src_host, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoD_v2(dst_device: u64, src_host: *const c_void, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_D_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, *const c_void, usize) -> u32>(address)(dst_device, src_host, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyHtoD_v2_ptds(dst_device: u64, src_host: *const c_void, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_HTO_D_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, *const c_void, usize) -> u32>(address)(dst_device, src_host, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyPeer(dst_device: u64, dst_context: Handle, src_device: u64, src_context: Handle, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_PEER) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, Handle, u64, Handle, usize) -> u32>(address)(dst_device, dst_context, src_device, src_context, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyPeerAsync(dst_device: u64, dst_context: Handle, src_device: u64, src_context: Handle, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_PEER_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, Handle, u64, Handle, usize, Handle) -> u32>(address)(dst_device, dst_context, src_device, src_context, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyPeerAsync_ptsz(dst_device: u64, dst_context: Handle, src_device: u64, src_context: Handle, byte_count: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_PEER_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, Handle, u64, Handle, usize, Handle) -> u32>(address)(dst_device, dst_context, src_device, src_context, byte_count, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyPeer_ptds(dst_device: u64, dst_context: Handle, src_device: u64, src_context: Handle, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_PEER_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, Handle, u64, Handle, usize) -> u32>(address)(dst_device, dst_context, src_device, src_context, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyWithAttributesAsync(dst: u64, src: u64, size: usize, attr: *mut c_void, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_WITH_ATTRIBUTES_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize, *mut c_void, Handle) -> u32>(address)(dst, src, size, attr, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyWithAttributesAsync_ptsz(dst: u64, src: u64, size: usize, attr: *mut c_void, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_WITH_ATTRIBUTES_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize, *mut c_void, Handle) -> u32>(address)(dst, src, size, attr, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy_ptds(dst: u64, src: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_PTDS) else { return driver::missing() };
        let inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize) -> u32>(address)(dst, src, byte_count) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD16(dst_device: u32, us: u16, n: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D16) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u16, u32) -> u32>(address)(dst_device, us, n) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD16Async(dst_device: u64, us: u16, n: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D16_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u16, usize, Handle) -> u32>(address)(dst_device, us, n, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD16Async_ptsz(dst_device: u64, us: u16, n: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D16_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u16, usize, Handle) -> u32>(address)(dst_device, us, n, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD16_v2(dst_device: u64, us: u16, n: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D16_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u16, usize) -> u32>(address)(dst_device, us, n) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD16_v2_ptds(dst_device: u64, us: u16, n: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D16_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u16, usize) -> u32>(address)(dst_device, us, n) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D16(dst_device: u32, dst_pitch: u32, us: u16, width: u32, height: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D16) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u32, u16, u32, u32) -> u32>(address)(dst_device, dst_pitch, us, width, height) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D16Async(dst_device: u64, dst_pitch: usize, us: u16, width: usize, height: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D16_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u16, usize, usize, Handle) -> u32>(address)(dst_device, dst_pitch, us, width, height, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D16Async_ptsz(dst_device: u64, dst_pitch: usize, us: u16, width: usize, height: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D16_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u16, usize, usize, Handle) -> u32>(address)(dst_device, dst_pitch, us, width, height, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D16_v2(dst_device: u64, dst_pitch: usize, us: u16, width: usize, height: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D16_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u16, usize, usize) -> u32>(address)(dst_device, dst_pitch, us, width, height) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D16_v2_ptds(dst_device: u64, dst_pitch: usize, us: u16, width: usize, height: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D16_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u16, usize, usize) -> u32>(address)(dst_device, dst_pitch, us, width, height) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D32(dst_device: u32, dst_pitch: u32, ui: u32, width: u32, height: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D32) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u32, u32, u32, u32) -> u32>(address)(dst_device, dst_pitch, ui, width, height) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D32Async(dst_device: u64, dst_pitch: usize, ui: u32, width: usize, height: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D32_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u32, usize, usize, Handle) -> u32>(address)(dst_device, dst_pitch, ui, width, height, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D32Async_ptsz(dst_device: u64, dst_pitch: usize, ui: u32, width: usize, height: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D32_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u32, usize, usize, Handle) -> u32>(address)(dst_device, dst_pitch, ui, width, height, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D32_v2(dst_device: u64, dst_pitch: usize, ui: u32, width: usize, height: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D32_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u32, usize, usize) -> u32>(address)(dst_device, dst_pitch, ui, width, height) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D32_v2_ptds(dst_device: u64, dst_pitch: usize, ui: u32, width: usize, height: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D32_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u32, usize, usize) -> u32>(address)(dst_device, dst_pitch, ui, width, height) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D8(dst_device: u32, dst_pitch: u32, uc: u8, width: u32, height: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D8) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u32, u8, u32, u32) -> u32>(address)(dst_device, dst_pitch, uc, width, height) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D8Async(dst_device: u64, dst_pitch: usize, uc: u8, width: usize, height: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D8_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u8, usize, usize, Handle) -> u32>(address)(dst_device, dst_pitch, uc, width, height, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D8Async_ptsz(dst_device: u64, dst_pitch: usize, uc: u8, width: usize, height: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D8_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u8, usize, usize, Handle) -> u32>(address)(dst_device, dst_pitch, uc, width, height, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D8_v2(dst_device: u64, dst_pitch: usize, uc: u8, width: usize, height: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D8_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u8, usize, usize) -> u32>(address)(dst_device, dst_pitch, uc, width, height) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD2D8_v2_ptds(dst_device: u64, dst_pitch: usize, uc: u8, width: usize, height: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D2_D8_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u8, usize, usize) -> u32>(address)(dst_device, dst_pitch, uc, width, height) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD32(dst_device: u32, ui: u32, n: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D32) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u32, u32) -> u32>(address)(dst_device, ui, n) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD32Async(dst_device: u64, ui: u32, n: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D32_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u32, usize, Handle) -> u32>(address)(dst_device, ui, n, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD32Async_ptsz(dst_device: u64, ui: u32, n: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D32_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u32, usize, Handle) -> u32>(address)(dst_device, ui, n, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD32_v2(dst_device: u64, ui: u32, n: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D32_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u32, usize) -> u32>(address)(dst_device, ui, n) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD32_v2_ptds(dst_device: u64, ui: u32, n: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D32_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u32, usize) -> u32>(address)(dst_device, ui, n) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD8(dst_device: u32, uc: u8, n: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D8) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u8, u32) -> u32>(address)(dst_device, uc, n) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD8Async(dst_device: u64, uc: u8, n: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D8_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u8, usize, Handle) -> u32>(address)(dst_device, uc, n, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD8Async_ptsz(dst_device: u64, uc: u8, n: usize, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D8_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u8, usize, Handle) -> u32>(address)(dst_device, uc, n, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD8_v2(dst_device: u64, uc: u8, n: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D8_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u8, usize) -> u32>(address)(dst_device, uc, n) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemsetD8_v2_ptds(dst_device: u64, uc: u8, n: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMSET_D8_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u8, usize) -> u32>(address)(dst_device, uc, n) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMipmappedArrayCreate(p_handle: *mut Handle, p_mipmapped_array_desc: *const c_void, num_mipmap_levels: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::arrays::cuMipmappedArrayCreate(ids::CU_MIPMAPPED_ARRAY_CREATE, p_handle, p_mipmapped_array_desc, num_mipmap_levels) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMipmappedArrayDestroy(h_mipmapped_array: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::arrays::cuMipmappedArrayDestroy(ids::CU_MIPMAPPED_ARRAY_DESTROY, h_mipmapped_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMipmappedArrayGetLevel(p_level_array: *mut Handle, h_mipmapped_array: Handle, level: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MIPMAPPED_ARRAY_GET_LEVEL) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, u32) -> u32>(address)(p_level_array, h_mipmapped_array, level) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMipmappedArrayGetMemoryRequirements(memory_requirements: *mut c_void, mipmap: Handle, device: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_MIPMAPPED_ARRAY_GET_MEMORY_REQUIREMENTS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle, i32) -> u32>(address)(memory_requirements, mipmap, device) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMipmappedArrayGetSparseProperties(sparse_properties: *mut c_void, mipmap: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MIPMAPPED_ARRAY_GET_SPARSE_PROPERTIES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, Handle) -> u32>(address)(sparse_properties, mipmap) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleEnumerateFunctions(functions: *mut Handle, num_functions: u32, mod_: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_ENUMERATE_FUNCTIONS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, u32, Handle) -> u32>(address)(functions, num_functions, mod_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleGetFunction(hfunc: *mut Handle, hmod: Handle, name: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_GET_FUNCTION) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const std::ffi::c_char) -> u32>(address)(hfunc, hmod, name) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleGetFunctionCount(count: *mut u32, mod_: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_GET_FUNCTION_COUNT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, Handle) -> u32>(address)(count, mod_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleGetGlobal(dptr: *mut u32, bytes: *mut u32, hmod: Handle, name: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_GET_GLOBAL) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *mut u32, Handle, *const std::ffi::c_char) -> u32>(address)(dptr, bytes, hmod, name) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleGetGlobal_v2(dptr: *mut u64, bytes: *mut usize, hmod: Handle, name: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_GET_GLOBAL_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *mut usize, Handle, *const std::ffi::c_char) -> u32>(address)(dptr, bytes, hmod, name) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleGetLoadingMode(mode: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_GET_LOADING_MODE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32) -> u32>(address)(mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleGetSurfRef(p_surf_ref: *mut Handle, hmod: Handle, name: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_GET_SURF_REF) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const std::ffi::c_char) -> u32>(address)(p_surf_ref, hmod, name) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleGetTexRef(p_tex_ref: *mut Handle, hmod: Handle, name: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_GET_TEX_REF) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const std::ffi::c_char) -> u32>(address)(p_tex_ref, hmod, name) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleLoad(module: *mut Handle, fname: *const std::ffi::c_char) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_LOAD) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const std::ffi::c_char) -> u32>(address)(module, fname) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleLoadData(module: *mut Handle, image: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_LOAD_DATA) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(module, image) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleLoadDataEx(module: *mut Handle, image: *const c_void, num_options: u32, options: *mut u32, option_values: *mut *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_LOAD_DATA_EX) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void, u32, *mut u32, *mut *mut c_void) -> u32>(address)(module, image, num_options, options, option_values) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleLoadFatBinary(module: *mut Handle, fat_cubin: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_LOAD_FAT_BINARY) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(module, fat_cubin) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuModuleUnload(hmod: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MODULE_UNLOAD) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(hmod) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastAddDevice(mc_handle: u64, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::multicast::cuMulticastAddDevice(ids::CU_MULTICAST_ADD_DEVICE, mc_handle, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastBindAddr(mc_handle: u64, mc_offset: usize, memptr: u64, size: usize, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::multicast::cuMulticastBindAddr(ids::CU_MULTICAST_BIND_ADDR, mc_handle, mc_offset, memptr, size, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastBindAddr_v2(mc_handle: u64, dev: i32, mc_offset: usize, memptr: u64, size: usize, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::multicast::cuMulticastBindAddr_v2(ids::CU_MULTICAST_BIND_ADDR_V2, mc_handle, dev, mc_offset, memptr, size, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastBindMem(mc_handle: u64, mc_offset: usize, mem_handle: u64, mem_offset: usize, size: usize, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::multicast::cuMulticastBindMem(ids::CU_MULTICAST_BIND_MEM, mc_handle, mc_offset, mem_handle, mem_offset, size, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastBindMem_v2(mc_handle: u64, dev: i32, mc_offset: usize, mem_handle: u64, mem_offset: usize, size: usize, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::multicast::cuMulticastBindMem_v2(ids::CU_MULTICAST_BIND_MEM_V2, mc_handle, dev, mc_offset, mem_handle, mem_offset, size, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastCreate(mc_handle: *mut u64, prop: *const c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::multicast::cuMulticastCreate(ids::CU_MULTICAST_CREATE, mc_handle, prop) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastGetGranularity(granularity: *mut usize, prop: *const c_void, option: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_MULTICAST_GET_GRANULARITY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, *const c_void, u32) -> u32>(address)(granularity, prop, option) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastUnbind(mc_handle: u64, dev: i32, mc_offset: usize, size: usize) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::multicast::cuMulticastUnbind(ids::CU_MULTICAST_UNBIND, mc_handle, dev, mc_offset, size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuOccupancyAvailableDynamicSMemPerBlock(dynamic_smem_size: *mut usize, func: Handle, num_blocks: i32, block_size: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_OCCUPANCY_AVAILABLE_DYNAMIC_SMEM_PER_BLOCK) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, Handle, i32, i32) -> u32>(address)(dynamic_smem_size, func, num_blocks, block_size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(num_blocks: *mut i32, func: Handle, block_size: i32, dynamic_smem_size: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_MULTIPROCESSOR) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, Handle, i32, usize) -> u32>(address)(num_blocks, func, block_size, dynamic_smem_size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(num_blocks: *mut i32, func: Handle, block_size: i32, dynamic_smem_size: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_MULTIPROCESSOR_WITH_FLAGS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, Handle, i32, usize, u32) -> u32>(address)(num_blocks, func, block_size, dynamic_smem_size, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuOccupancyMaxActiveClusters(num_clusters: *mut i32, func: Handle, config: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_OCCUPANCY_MAX_ACTIVE_CLUSTERS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, Handle, *const c_void) -> u32>(address)(num_clusters, func, config) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuOccupancyMaxPotentialBlockSize(min_grid_size: *mut i32, block_size: *mut i32, func: Handle, block_size_to_dynamic_smem_size: Handle, dynamic_smem_size: usize, block_size_limit: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_OCCUPANCY_MAX_POTENTIAL_BLOCK_SIZE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, *mut i32, Handle, Handle, usize, i32) -> u32>(address)(min_grid_size, block_size, func, block_size_to_dynamic_smem_size, dynamic_smem_size, block_size_limit) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid_size: *mut i32, block_size: *mut i32, func: Handle, block_size_to_dynamic_smem_size: Handle, dynamic_smem_size: usize, block_size_limit: i32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_OCCUPANCY_MAX_POTENTIAL_BLOCK_SIZE_WITH_FLAGS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, *mut i32, Handle, Handle, usize, i32, u32) -> u32>(address)(min_grid_size, block_size, func, block_size_to_dynamic_smem_size, dynamic_smem_size, block_size_limit, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuOccupancyMaxPotentialClusterSize(cluster_size: *mut i32, func: Handle, config: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_OCCUPANCY_MAX_POTENTIAL_CLUSTER_SIZE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, Handle, *const c_void) -> u32>(address)(cluster_size, func, config) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuParamSetSize(hfunc: Handle, numbytes: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_PARAM_SET_SIZE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(hfunc, numbytes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuParamSetTexRef(hfunc: Handle, texunit: i32, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_PARAM_SET_TEX_REF) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, i32, Handle) -> u32>(address)(hfunc, texunit, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuParamSetf(hfunc: Handle, offset: i32, value: f32) -> u32 {
        let Some(address) = driver::address(ids::CU_PARAM_SETF) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, i32, f32) -> u32>(address)(hfunc, offset, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuParamSeti(hfunc: Handle, offset: i32, value: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_PARAM_SETI) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, i32, u32) -> u32>(address)(hfunc, offset, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuParamSetv(hfunc: Handle, offset: i32, ptr: *mut c_void, numbytes: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_PARAM_SETV) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, i32, *mut c_void, u32) -> u32>(address)(hfunc, offset, ptr, numbytes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuPointerGetAttribute(data: *mut c_void, attribute: u32, ptr: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::pointers::cuPointerGetAttribute(ids::CU_POINTER_GET_ATTRIBUTE, data, attribute, ptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuPointerGetAttributes(num_attributes: u32, attributes: *mut u32, data: *mut *mut c_void, ptr: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::pointers::cuPointerGetAttributes(ids::CU_POINTER_GET_ATTRIBUTES, num_attributes, attributes, data, ptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuPointerSetAttribute(value: *const c_void, attribute: u32, ptr: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_POINTER_SET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const c_void, u32, u64) -> u32>(address)(value, attribute, ptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuSignalExternalSemaphoresAsync(ext_sem_array: *const Handle, params_array: *const c_void, num_ext_sems: u32, stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_SIGNAL_EXTERNAL_SEMAPHORES_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const Handle, *const c_void, u32, Handle) -> u32>(address)(ext_sem_array, params_array, num_ext_sems, stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuSignalExternalSemaphoresAsync_ptsz(ext_sem_array: *const Handle, params_array: *const c_void, num_ext_sems: u32, stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_SIGNAL_EXTERNAL_SEMAPHORES_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const Handle, *const c_void, u32, Handle) -> u32>(address)(ext_sem_array, params_array, num_ext_sems, stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamAddCallback(h_stream: Handle, callback: Handle, user_data: *mut c_void, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_ADD_CALLBACK) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut c_void, u32) -> u32>(address)(h_stream, callback, user_data, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamAddCallback_ptsz(h_stream: Handle, callback: Handle, user_data: *mut c_void, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_ADD_CALLBACK_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut c_void, u32) -> u32>(address)(h_stream, callback, user_data, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamAttachMemAsync(h_stream: Handle, dptr: u64, length: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_ATTACH_MEM_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, usize, u32) -> u32>(address)(h_stream, dptr, length, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamAttachMemAsync_ptsz(h_stream: Handle, dptr: u64, length: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_ATTACH_MEM_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, usize, u32) -> u32>(address)(h_stream, dptr, length, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBatchMemOp(stream: Handle, count: u32, param_array: *mut c_void, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_BATCH_MEM_OP) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void, u32) -> u32>(address)(stream, count, param_array, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBatchMemOp_ptsz(stream: Handle, count: u32, param_array: *mut c_void, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_BATCH_MEM_OP_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void, u32) -> u32>(address)(stream, count, param_array, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBatchMemOp_v2(stream: Handle, count: u32, param_array: *mut c_void, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_BATCH_MEM_OP_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void, u32) -> u32>(address)(stream, count, param_array, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBatchMemOp_v2_ptsz(stream: Handle, count: u32, param_array: *mut c_void, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_BATCH_MEM_OP_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void, u32) -> u32>(address)(stream, count, param_array, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCapture(h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamBeginCapture(ids::CU_STREAM_BEGIN_CAPTURE, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCaptureToCig(h_stream: Handle, stream_cig_capture_params: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamBeginCaptureToCig(ids::CU_STREAM_BEGIN_CAPTURE_TO_CIG, h_stream, stream_cig_capture_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCaptureToCig_ptsz(h_stream: Handle, stream_cig_capture_params: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamBeginCaptureToCig(ids::CU_STREAM_BEGIN_CAPTURE_TO_CIG_PTSZ, h_stream, stream_cig_capture_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCaptureToGraph(h_stream: Handle, h_graph: Handle, dependencies: *const Handle, dependency_data: *const c_void, num_dependencies: usize, mode: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamBeginCaptureToGraph(ids::CU_STREAM_BEGIN_CAPTURE_TO_GRAPH, h_stream, h_graph, dependencies, dependency_data, num_dependencies, mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCaptureToGraph_ptsz(h_stream: Handle, h_graph: Handle, dependencies: *const Handle, dependency_data: *const c_void, num_dependencies: usize, mode: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamBeginCaptureToGraph(ids::CU_STREAM_BEGIN_CAPTURE_TO_GRAPH_PTSZ, h_stream, h_graph, dependencies, dependency_data, num_dependencies, mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCapture_ptsz(h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamBeginCapture(ids::CU_STREAM_BEGIN_CAPTURE_PTSZ, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCapture_v2(h_stream: Handle, mode: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamBeginCapture_v2(ids::CU_STREAM_BEGIN_CAPTURE_V2, h_stream, mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCapture_v2_ptsz(h_stream: Handle, mode: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamBeginCapture_v2(ids::CU_STREAM_BEGIN_CAPTURE_V2_PTSZ, h_stream, mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginRecaptureToGraph(h_stream: Handle, mode: u32, h_graph: Handle, callback_func: Handle, user_data: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamBeginRecaptureToGraph(ids::CU_STREAM_BEGIN_RECAPTURE_TO_GRAPH, h_stream, mode, h_graph, callback_func, user_data) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginRecaptureToGraph_ptsz(h_stream: Handle, mode: u32, h_graph: Handle, callback_func: Handle, user_data: *mut c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamBeginRecaptureToGraph(ids::CU_STREAM_BEGIN_RECAPTURE_TO_GRAPH_PTSZ, h_stream, mode, h_graph, callback_func, user_data) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamCopyAttributes(dst_stream: Handle, src_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_COPY_ATTRIBUTES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(dst_stream, src_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamCopyAttributes_ptsz(dst: Handle, src: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_COPY_ATTRIBUTES_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(dst, src) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamCreate(ph_stream: *mut Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_CREATE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, u32) -> u32>(address)(ph_stream, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamCreateWithPriority(ph_stream: *mut Handle, flags: u32, priority: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_CREATE_WITH_PRIORITY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, u32, i32) -> u32>(address)(ph_stream, flags, priority) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamDestroy(h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamDestroy(ids::CU_STREAM_DESTROY, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamDestroy_v2(h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamDestroy_v2(ids::CU_STREAM_DESTROY_V2, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamEndCapture(h_stream: Handle, ph_graph: *mut Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamEndCapture(ids::CU_STREAM_END_CAPTURE, h_stream, ph_graph) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamEndCaptureToCig(h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamEndCaptureToCig(ids::CU_STREAM_END_CAPTURE_TO_CIG, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamEndCaptureToCig_ptsz(h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamEndCaptureToCig(ids::CU_STREAM_END_CAPTURE_TO_CIG_PTSZ, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamEndCapture_ptsz(h_stream: Handle, ph_graph: *mut Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::lifetimes::captures::cuStreamEndCapture(ids::CU_STREAM_END_CAPTURE_PTSZ, h_stream, ph_graph) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetAttribute(h_stream: Handle, attr: u32, value: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void) -> u32>(address)(h_stream, attr, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetAttribute_ptsz(h_stream: Handle, attr: u32, value_out: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_ATTRIBUTE_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *mut c_void) -> u32>(address)(h_stream, attr, value_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetCaptureInfo(h_stream: Handle, capture_status_out: *mut u32, id_out: *mut u64) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CAPTURE_INFO) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32, *mut u64) -> u32>(address)(h_stream, capture_status_out, id_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetCaptureInfo_ptsz(h_stream: Handle, capture_status_out: *mut u32, id_out: *mut u64) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CAPTURE_INFO_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32, *mut u64) -> u32>(address)(h_stream, capture_status_out, id_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetCaptureInfo_v2(h_stream: Handle, capture_status_out: *mut u32, id_out: *mut u64, graph_out: *mut Handle, dependencies_out: *mut *const Handle, num_dependencies_out: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CAPTURE_INFO_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32, *mut u64, *mut Handle, *mut *const Handle, *mut usize) -> u32>(address)(h_stream, capture_status_out, id_out, graph_out, dependencies_out, num_dependencies_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetCaptureInfo_v2_ptsz(h_stream: Handle, capture_status_out: *mut u32, id_out: *mut u64, graph_out: *mut Handle, dependencies_out: *mut *const Handle, num_dependencies_out: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CAPTURE_INFO_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32, *mut u64, *mut Handle, *mut *const Handle, *mut usize) -> u32>(address)(h_stream, capture_status_out, id_out, graph_out, dependencies_out, num_dependencies_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetCaptureInfo_v3(h_stream: Handle, capture_status_out: *mut u32, id_out: *mut u64, graph_out: *mut Handle, dependencies_out: *mut *const Handle, edge_data_out: *mut *const c_void, num_dependencies_out: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CAPTURE_INFO_V3) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32, *mut u64, *mut Handle, *mut *const Handle, *mut *const c_void, *mut usize) -> u32>(address)(h_stream, capture_status_out, id_out, graph_out, dependencies_out, edge_data_out, num_dependencies_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetCaptureInfo_v3_ptsz(h_stream: Handle, capture_status_out: *mut u32, id_out: *mut u64, graph_out: *mut Handle, dependencies_out: *mut *const Handle, edge_data_out: *mut *const c_void, num_dependencies_out: *mut usize) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CAPTURE_INFO_V3_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32, *mut u64, *mut Handle, *mut *const Handle, *mut *const c_void, *mut usize) -> u32>(address)(h_stream, capture_status_out, id_out, graph_out, dependencies_out, edge_data_out, num_dependencies_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetCtx(h_stream: Handle, pctx: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CTX) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle) -> u32>(address)(h_stream, pctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetCtx_ptsz(h_stream: Handle, pctx: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CTX_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle) -> u32>(address)(h_stream, pctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetCtx_v2(h_stream: Handle, p_ctx: *mut Handle, p_green_ctx: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CTX_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *mut Handle) -> u32>(address)(h_stream, p_ctx, p_green_ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetCtx_v2_ptsz(h_stream: Handle, p_ctx: *mut Handle, p_green_ctx: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_CTX_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *mut Handle) -> u32>(address)(h_stream, p_ctx, p_green_ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetDevResource(h_stream: Handle, resource: *mut c_void, type_: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_DEV_RESOURCE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void, u32) -> u32>(address)(h_stream, resource, type_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetDevResource_ptsz(h_stream: Handle, resource: *mut c_void, type_: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_DEV_RESOURCE_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void, u32) -> u32>(address)(h_stream, resource, type_) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetDevice(h_stream: Handle, device: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_DEVICE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut i32) -> u32>(address)(h_stream, device) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetDevice_ptsz(h_stream: Handle, device: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_DEVICE_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut i32) -> u32>(address)(h_stream, device) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetFlags(h_stream: Handle, flags: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_FLAGS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32) -> u32>(address)(h_stream, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetFlags_ptsz(h_stream: Handle, flags: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_FLAGS_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32) -> u32>(address)(h_stream, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetGreenCtx(h_stream: Handle, ph_ctx: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_GREEN_CTX) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle) -> u32>(address)(h_stream, ph_ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetId(h_stream: Handle, stream_id: *mut u64) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_ID) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u64) -> u32>(address)(h_stream, stream_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetId_ptsz(h_stream: Handle, stream_id: *mut u64) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_ID_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u64) -> u32>(address)(h_stream, stream_id) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetPriority(h_stream: Handle, priority: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_PRIORITY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut i32) -> u32>(address)(h_stream, priority) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamGetPriority_ptsz(h_stream: Handle, priority: *mut i32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_GET_PRIORITY_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut i32) -> u32>(address)(h_stream, priority) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamIsCapturing(h_stream: Handle, capture_status: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_IS_CAPTURING) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32) -> u32>(address)(h_stream, capture_status) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamIsCapturing_ptsz(h_stream: Handle, capture_status: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_IS_CAPTURING_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut u32) -> u32>(address)(h_stream, capture_status) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamQuery(h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_QUERY) else { return driver::missing() };
        let inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_stream) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamQuery_ptsz(h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_QUERY_PTSZ) else { return driver::missing() };
        let inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_stream) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamSetAttribute(h_stream: Handle, attr: u32, param: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_SET_ATTRIBUTE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *const c_void) -> u32>(address)(h_stream, attr, param) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamSetAttribute_ptsz(h_stream: Handle, attr: u32, value: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_SET_ATTRIBUTE_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, *const c_void) -> u32>(address)(h_stream, attr, value) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamSynchronize(h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_SYNCHRONIZE) else { return driver::missing() };
        let inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_stream) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamSynchronize_ptsz(h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_SYNCHRONIZE_PTSZ) else { return driver::missing() };
        let inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        let result = unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_stream) };
        drop(inside);
        moment::waited(result);
        result
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamUpdateCaptureDependencies(h_stream: Handle, dependencies: *mut Handle, num_dependencies: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_UPDATE_CAPTURE_DEPENDENCIES) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, usize, u32) -> u32>(address)(h_stream, dependencies, num_dependencies, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamUpdateCaptureDependencies_ptsz(h_stream: Handle, dependencies: *mut Handle, num_dependencies: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_UPDATE_CAPTURE_DEPENDENCIES_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, usize, u32) -> u32>(address)(h_stream, dependencies, num_dependencies, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamUpdateCaptureDependencies_v2(h_stream: Handle, dependencies: *mut Handle, dependency_data: *const c_void, num_dependencies: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_UPDATE_CAPTURE_DEPENDENCIES_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *const c_void, usize, u32) -> u32>(address)(h_stream, dependencies, dependency_data, num_dependencies, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamUpdateCaptureDependencies_v2_ptsz(h_stream: Handle, dependencies: *mut Handle, dependency_data: *const c_void, num_dependencies: usize, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_UPDATE_CAPTURE_DEPENDENCIES_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut Handle, *const c_void, usize, u32) -> u32>(address)(h_stream, dependencies, dependency_data, num_dependencies, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWaitEvent(h_stream: Handle, h_event: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WAIT_EVENT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32) -> u32>(address)(h_stream, h_event, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWaitEvent_ptsz(h_stream: Handle, h_event: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WAIT_EVENT_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32) -> u32>(address)(h_stream, h_event, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWaitValue32(stream: Handle, addr: u64, value: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WAIT_VALUE32) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u32, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWaitValue32_ptsz(stream: Handle, addr: u64, value: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WAIT_VALUE32_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u32, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWaitValue32_v2(stream: Handle, addr: u64, value: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WAIT_VALUE32_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u32, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWaitValue32_v2_ptsz(stream: Handle, addr: u64, value: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WAIT_VALUE32_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u32, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWaitValue64(stream: Handle, addr: u64, value: u64, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WAIT_VALUE64) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u64, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWaitValue64_ptsz(stream: Handle, addr: u64, value: u64, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WAIT_VALUE64_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u64, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWaitValue64_v2(stream: Handle, addr: u64, value: u64, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WAIT_VALUE64_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u64, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWaitValue64_v2_ptsz(stream: Handle, addr: u64, value: u64, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WAIT_VALUE64_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u64, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWriteValue32(stream: Handle, addr: u64, value: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WRITE_VALUE32) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u32, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWriteValue32_ptsz(stream: Handle, addr: u64, value: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WRITE_VALUE32_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u32, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWriteValue32_v2(stream: Handle, addr: u64, value: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WRITE_VALUE32_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u32, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWriteValue32_v2_ptsz(stream: Handle, addr: u64, value: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WRITE_VALUE32_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u32, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWriteValue64(stream: Handle, addr: u64, value: u64, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WRITE_VALUE64) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u64, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWriteValue64_ptsz(stream: Handle, addr: u64, value: u64, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WRITE_VALUE64_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u64, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWriteValue64_v2(stream: Handle, addr: u64, value: u64, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WRITE_VALUE64_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u64, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamWriteValue64_v2_ptsz(stream: Handle, addr: u64, value: u64, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_STREAM_WRITE_VALUE64_V2_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u64, u64, u32) -> u32>(address)(stream, addr, value, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuSurfObjectCreate(p_surf_object: *mut u64, p_res_desc: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_SURF_OBJECT_CREATE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *const c_void) -> u32>(address)(p_surf_object, p_res_desc) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuSurfObjectDestroy(surf_object: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_SURF_OBJECT_DESTROY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64) -> u32>(address)(surf_object) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuSurfObjectGetResourceDesc(p_res_desc: *mut c_void, surf_object: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_SURF_OBJECT_GET_RESOURCE_DESC) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64) -> u32>(address)(p_res_desc, surf_object) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuSurfRefGetArray(ph_array: *mut Handle, h_surf_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_SURF_REF_GET_ARRAY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle) -> u32>(address)(ph_array, h_surf_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuSurfRefSetArray(h_surf_ref: Handle, h_array: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_SURF_REF_SET_ARRAY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32) -> u32>(address)(h_surf_ref, h_array, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTensorMapEncodeIm2col(tensor_map: *mut c_void, tensor_data_type: u32, tensor_rank: u32, global_address: *mut c_void, global_dim: *const u64, global_strides: *const u64, pixel_box_lower_corner: *const i32, pixel_box_upper_corner: *const i32, channels_per_pixel: u32, pixels_per_column: u32, element_strides: *const u32, interleave: u32, swizzle: u32, l2_promotion: u32, oob_fill: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TENSOR_MAP_ENCODE_IM2COL) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, u32, *mut c_void, *const u64, *const u64, *const i32, *const i32, u32, u32, *const u32, u32, u32, u32, u32) -> u32>(address)(tensor_map, tensor_data_type, tensor_rank, global_address, global_dim, global_strides, pixel_box_lower_corner, pixel_box_upper_corner, channels_per_pixel, pixels_per_column, element_strides, interleave, swizzle, l2_promotion, oob_fill) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTensorMapEncodeIm2colWide(tensor_map: *mut c_void, tensor_data_type: u32, tensor_rank: u32, global_address: *mut c_void, global_dim: *const u64, global_strides: *const u64, pixel_box_lower_corner_width: i32, pixel_box_upper_corner_width: i32, channels_per_pixel: u32, pixels_per_column: u32, element_strides: *const u32, interleave: u32, mode: u32, swizzle: u32, l2_promotion: u32, oob_fill: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TENSOR_MAP_ENCODE_IM2COL_WIDE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, u32, *mut c_void, *const u64, *const u64, i32, i32, u32, u32, *const u32, u32, u32, u32, u32, u32) -> u32>(address)(tensor_map, tensor_data_type, tensor_rank, global_address, global_dim, global_strides, pixel_box_lower_corner_width, pixel_box_upper_corner_width, channels_per_pixel, pixels_per_column, element_strides, interleave, mode, swizzle, l2_promotion, oob_fill) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTensorMapEncodeTiled(tensor_map: *mut c_void, tensor_data_type: u32, tensor_rank: u32, global_address: *mut c_void, global_dim: *const u64, global_strides: *const u64, box_dim: *const u32, element_strides: *const u32, interleave: u32, swizzle: u32, l2_promotion: u32, oob_fill: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TENSOR_MAP_ENCODE_TILED) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, u32, *mut c_void, *const u64, *const u64, *const u32, *const u32, u32, u32, u32, u32) -> u32>(address)(tensor_map, tensor_data_type, tensor_rank, global_address, global_dim, global_strides, box_dim, element_strides, interleave, swizzle, l2_promotion, oob_fill) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTensorMapReplaceAddress(tensor_map: *mut c_void, global_address: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_TENSOR_MAP_REPLACE_ADDRESS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, *mut c_void) -> u32>(address)(tensor_map, global_address) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTensorMapSetAllocationClass(tensor_map: *mut c_void, alloc_class: u32, out_alloc_class: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TENSOR_MAP_SET_ALLOCATION_CLASS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, *mut u32) -> u32>(address)(tensor_map, alloc_class, out_alloc_class) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexObjectCreate(p_tex_object: *mut u64, p_res_desc: *const c_void, p_tex_desc: *const c_void, p_res_view_desc: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_OBJECT_CREATE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *const c_void, *const c_void, *const c_void) -> u32>(address)(p_tex_object, p_res_desc, p_tex_desc, p_res_view_desc) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexObjectDestroy(tex_object: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_OBJECT_DESTROY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64) -> u32>(address)(tex_object) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexObjectGetResourceDesc(p_res_desc: *mut c_void, tex_object: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_OBJECT_GET_RESOURCE_DESC) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64) -> u32>(address)(p_res_desc, tex_object) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexObjectGetResourceViewDesc(p_res_view_desc: *mut c_void, tex_object: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_OBJECT_GET_RESOURCE_VIEW_DESC) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64) -> u32>(address)(p_res_view_desc, tex_object) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexObjectGetTextureDesc(p_tex_desc: *mut c_void, tex_object: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_OBJECT_GET_TEXTURE_DESC) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64) -> u32>(address)(p_tex_desc, tex_object) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefCreate(p_tex_ref: *mut Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_CREATE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle) -> u32>(address)(p_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefDestroy(h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_DESTROY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetAddress(pdptr: *mut u32, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_ADDRESS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, Handle) -> u32>(address)(pdptr, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetAddressMode(pam: *mut u32, h_tex_ref: Handle, dim: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_ADDRESS_MODE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, Handle, i32) -> u32>(address)(pam, h_tex_ref, dim) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetAddress_v2(pdptr: *mut u64, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_ADDRESS_V2) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, Handle) -> u32>(address)(pdptr, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetArray(ph_array: *mut Handle, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_ARRAY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle) -> u32>(address)(ph_array, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetBorderColor(p_border_color: *mut f32, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_BORDER_COLOR) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut f32, Handle) -> u32>(address)(p_border_color, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetFilterMode(pfm: *mut u32, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_FILTER_MODE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, Handle) -> u32>(address)(pfm, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetFlags(p_flags: *mut u32, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_FLAGS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, Handle) -> u32>(address)(p_flags, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetFormat(p_format: *mut u32, p_num_channels: *mut i32, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_FORMAT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, *mut i32, Handle) -> u32>(address)(p_format, p_num_channels, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetMaxAnisotropy(pmax_aniso: *mut i32, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_MAX_ANISOTROPY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut i32, Handle) -> u32>(address)(pmax_aniso, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetMipmapFilterMode(pfm: *mut u32, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_MIPMAP_FILTER_MODE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, Handle) -> u32>(address)(pfm, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetMipmapLevelBias(pbias: *mut f32, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_MIPMAP_LEVEL_BIAS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut f32, Handle) -> u32>(address)(pbias, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetMipmapLevelClamp(pmin_mipmap_level_clamp: *mut f32, pmax_mipmap_level_clamp: *mut f32, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_MIPMAP_LEVEL_CLAMP) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut f32, *mut f32, Handle) -> u32>(address)(pmin_mipmap_level_clamp, pmax_mipmap_level_clamp, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefGetMipmappedArray(ph_mipmapped_array: *mut Handle, h_tex_ref: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_GET_MIPMAPPED_ARRAY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle) -> u32>(address)(ph_mipmapped_array, h_tex_ref) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetAddress(byte_offset: *mut u32, h_tex_ref: Handle, dptr: u32, bytes: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_ADDRESS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32, Handle, u32, u32) -> u32>(address)(byte_offset, h_tex_ref, dptr, bytes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetAddress2D(h_tex_ref: Handle, desc: *const c_void, dptr: u32, pitch: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_ADDRESS2_D) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void, u32, u32) -> u32>(address)(h_tex_ref, desc, dptr, pitch) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetAddress2D_v2(h_tex_ref: Handle, desc: *const c_void, dptr: u64, pitch: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_ADDRESS2_D_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void, u64, usize) -> u32>(address)(h_tex_ref, desc, dptr, pitch) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetAddress2D_v3(h_tex_ref: Handle, desc: *const c_void, dptr: u64, pitch: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_ADDRESS2_D_V3) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void, u64, usize) -> u32>(address)(h_tex_ref, desc, dptr, pitch) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetAddressMode(h_tex_ref: Handle, dim: i32, am: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_ADDRESS_MODE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, i32, u32) -> u32>(address)(h_tex_ref, dim, am) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetAddress_v2(byte_offset: *mut usize, h_tex_ref: Handle, dptr: u64, bytes: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_ADDRESS_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, Handle, u64, usize) -> u32>(address)(byte_offset, h_tex_ref, dptr, bytes) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetArray(h_tex_ref: Handle, h_array: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_ARRAY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32) -> u32>(address)(h_tex_ref, h_array, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetBorderColor(h_tex_ref: Handle, p_border_color: *mut f32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_BORDER_COLOR) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut f32) -> u32>(address)(h_tex_ref, p_border_color) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetFilterMode(h_tex_ref: Handle, fm: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_FILTER_MODE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(h_tex_ref, fm) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetFlags(h_tex_ref: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_FLAGS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(h_tex_ref, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetFormat(h_tex_ref: Handle, fmt: u32, num_packed_components: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_FORMAT) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32, i32) -> u32>(address)(h_tex_ref, fmt, num_packed_components) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetMaxAnisotropy(h_tex_ref: Handle, max_aniso: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_MAX_ANISOTROPY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(h_tex_ref, max_aniso) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetMipmapFilterMode(h_tex_ref: Handle, fm: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_MIPMAP_FILTER_MODE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(h_tex_ref, fm) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetMipmapLevelBias(h_tex_ref: Handle, bias: f32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_MIPMAP_LEVEL_BIAS) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, f32) -> u32>(address)(h_tex_ref, bias) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetMipmapLevelClamp(h_tex_ref: Handle, min_mipmap_level_clamp: f32, max_mipmap_level_clamp: f32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_MIPMAP_LEVEL_CLAMP) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, f32, f32) -> u32>(address)(h_tex_ref, min_mipmap_level_clamp, max_mipmap_level_clamp) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuTexRefSetMipmappedArray(h_tex_ref: Handle, h_mipmapped_array: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_MIPMAPPED_ARRAY) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32) -> u32>(address)(h_tex_ref, h_mipmapped_array, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) -> u32 {
        let Some(address) = driver::address(ids::CU_THREAD_EXCHANGE_STREAM_CAPTURE_MODE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u32) -> u32>(address)(mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuUserObjectCreate(object_out: *mut Handle, ptr: *mut c_void, destroy: Handle, initial_refcount: u32, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_USER_OBJECT_CREATE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *mut c_void, Handle, u32, u32) -> u32>(address)(object_out, ptr, destroy, initial_refcount, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuUserObjectRelease(object: Handle, count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_USER_OBJECT_RELEASE) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(object, count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuUserObjectRetain(object: Handle, count: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_USER_OBJECT_RETAIN) else { return driver::missing() };
        let _inside = gate::enter_query();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, u32) -> u32>(address)(object, count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuWaitExternalSemaphoresAsync(ext_sem_array: *const Handle, params_array: *const c_void, num_ext_sems: u32, stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_WAIT_EXTERNAL_SEMAPHORES_ASYNC) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const Handle, *const c_void, u32, Handle) -> u32>(address)(ext_sem_array, params_array, num_ext_sems, stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuWaitExternalSemaphoresAsync_ptsz(ext_sem_array: *const Handle, params_array: *const c_void, num_ext_sems: u32, stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_WAIT_EXTERNAL_SEMAPHORES_ASYNC_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*const Handle, *const c_void, u32, Handle) -> u32>(address)(ext_sem_array, params_array, num_ext_sems, stream) }
    }
}
