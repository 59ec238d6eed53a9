// Written by shim/generate/generate.py from cuda.h and classes.toml. Do not edit.

use std::ffi::c_void;

use crate::abi::{Handle, IpcHandle, MemLocation};
use crate::table::{Entry, Wrapper};
use crate::{driver, gate};

#[rustfmt::skip]
/// Entry points by number: an [`Entry`] is an index of [`NAMES`], which is sorted.
#[allow(missing_docs, dead_code)]
pub mod ids {
    use crate::table::Entry;
    pub const CU_ARRAY3_DCREATE: Entry = Entry(0);
    pub const CU_ARRAY3_DCREATE_V2: Entry = Entry(1);
    pub const CU_ARRAY_CREATE: Entry = Entry(2);
    pub const CU_ARRAY_CREATE_V2: Entry = Entry(3);
    pub const CU_ARRAY_DESTROY: Entry = Entry(4);
    pub const CU_CTX_ATTACH: Entry = Entry(5);
    pub const CU_CTX_CREATE: Entry = Entry(6);
    pub const CU_CTX_CREATE_V2: Entry = Entry(7);
    pub const CU_CTX_CREATE_V3: Entry = Entry(8);
    pub const CU_CTX_CREATE_V4: Entry = Entry(9);
    pub const CU_CTX_DESTROY: Entry = Entry(10);
    pub const CU_CTX_DESTROY_V2: Entry = Entry(11);
    pub const CU_CTX_DETACH: Entry = Entry(12);
    pub const CU_CTX_DISABLE_PEER_ACCESS: Entry = Entry(13);
    pub const CU_CTX_ENABLE_PEER_ACCESS: Entry = Entry(14);
    pub const CU_CTX_FROM_GREEN_CTX: Entry = Entry(15);
    pub const CU_CTX_GET_CURRENT: Entry = Entry(16);
    pub const CU_CTX_GET_DEVICE: Entry = Entry(17);
    pub const CU_CTX_GET_LIMIT: Entry = Entry(18);
    pub const CU_CTX_POP_CURRENT_V2: Entry = Entry(19);
    pub const CU_CTX_PUSH_CURRENT_V2: Entry = Entry(20);
    pub const CU_CTX_RECORD_EVENT: Entry = Entry(21);
    pub const CU_CTX_SET_LIMIT: Entry = Entry(22);
    pub const CU_CTX_SYNCHRONIZE: Entry = Entry(23);
    pub const CU_CTX_WAIT_EVENT: Entry = Entry(24);
    pub const CU_DESTROY_EXTERNAL_MEMORY: Entry = Entry(25);
    pub const CU_DESTROY_EXTERNAL_SEMAPHORE: Entry = Entry(26);
    pub const CU_DEVICE_GET: Entry = Entry(27);
    pub const CU_DEVICE_GET_ATTRIBUTE: Entry = Entry(28);
    pub const CU_DEVICE_GET_COUNT: Entry = Entry(29);
    pub const CU_DEVICE_GET_DEFAULT_MEM_POOL: Entry = Entry(30);
    pub const CU_DEVICE_GET_GRAPH_MEM_ATTRIBUTE: Entry = Entry(31);
    pub const CU_DEVICE_GET_NAME: Entry = Entry(32);
    pub const CU_DEVICE_GET_UUID: Entry = Entry(33);
    pub const CU_DEVICE_GET_UUID_V2: Entry = Entry(34);
    pub const CU_DEVICE_GRAPH_MEM_TRIM: Entry = Entry(35);
    pub const CU_DEVICE_PRIMARY_CTX_GET_STATE: Entry = Entry(36);
    pub const CU_DEVICE_PRIMARY_CTX_RELEASE: Entry = Entry(37);
    pub const CU_DEVICE_PRIMARY_CTX_RELEASE_V2: Entry = Entry(38);
    pub const CU_DEVICE_PRIMARY_CTX_RESET: Entry = Entry(39);
    pub const CU_DEVICE_PRIMARY_CTX_RESET_V2: Entry = Entry(40);
    pub const CU_DEVICE_PRIMARY_CTX_RETAIN: Entry = Entry(41);
    pub const CU_DEVICE_TOTAL_MEM_V2: Entry = Entry(42);
    pub const CU_EVENT_RECORD: Entry = Entry(43);
    pub const CU_EVENT_RECORD_WITH_FLAGS: Entry = Entry(44);
    pub const CU_EVENT_RECORD_WITH_FLAGS_PTSZ: Entry = Entry(45);
    pub const CU_EVENT_RECORD_PTSZ: Entry = Entry(46);
    pub const CU_FLUSH_GPUDIRECT_RDMAWRITES: Entry = Entry(47);
    pub const CU_GET_PROC_ADDRESS: Entry = Entry(48);
    pub const CU_GET_PROC_ADDRESS_V2: Entry = Entry(49);
    pub const CU_GRAPH_ADD_BATCH_MEM_OP_NODE: Entry = Entry(50);
    pub const CU_GRAPH_ADD_CHILD_GRAPH_NODE: Entry = Entry(51);
    pub const CU_GRAPH_ADD_EMPTY_NODE: Entry = Entry(52);
    pub const CU_GRAPH_ADD_EVENT_RECORD_NODE: Entry = Entry(53);
    pub const CU_GRAPH_ADD_EVENT_WAIT_NODE: Entry = Entry(54);
    pub const CU_GRAPH_ADD_EXTERNAL_SEMAPHORES_SIGNAL_NODE: Entry = Entry(55);
    pub const CU_GRAPH_ADD_EXTERNAL_SEMAPHORES_WAIT_NODE: Entry = Entry(56);
    pub const CU_GRAPH_ADD_HOST_NODE: Entry = Entry(57);
    pub const CU_GRAPH_ADD_KERNEL_NODE: Entry = Entry(58);
    pub const CU_GRAPH_ADD_KERNEL_NODE_V2: Entry = Entry(59);
    pub const CU_GRAPH_ADD_MEM_ALLOC_NODE: Entry = Entry(60);
    pub const CU_GRAPH_ADD_MEM_FREE_NODE: Entry = Entry(61);
    pub const CU_GRAPH_ADD_MEMCPY_NODE: Entry = Entry(62);
    pub const CU_GRAPH_ADD_MEMSET_NODE: Entry = Entry(63);
    pub const CU_GRAPH_ADD_NODE: Entry = Entry(64);
    pub const CU_GRAPH_ADD_NODE_V2: Entry = Entry(65);
    pub const CU_GRAPH_BATCH_MEM_OP_NODE_SET_PARAMS: Entry = Entry(66);
    pub const CU_GRAPH_EXEC_BATCH_MEM_OP_NODE_SET_PARAMS: Entry = Entry(67);
    pub const CU_GRAPH_EXEC_CHILD_GRAPH_NODE_SET_PARAMS: Entry = Entry(68);
    pub const CU_GRAPH_EXEC_EVENT_RECORD_NODE_SET_EVENT: Entry = Entry(69);
    pub const CU_GRAPH_EXEC_EVENT_WAIT_NODE_SET_EVENT: Entry = Entry(70);
    pub const CU_GRAPH_EXEC_EXTERNAL_SEMAPHORES_SIGNAL_NODE_SET_PARAMS: Entry = Entry(71);
    pub const CU_GRAPH_EXEC_EXTERNAL_SEMAPHORES_WAIT_NODE_SET_PARAMS: Entry = Entry(72);
    pub const CU_GRAPH_EXEC_HOST_NODE_SET_PARAMS: Entry = Entry(73);
    pub const CU_GRAPH_EXEC_KERNEL_NODE_SET_PARAMS: Entry = Entry(74);
    pub const CU_GRAPH_EXEC_KERNEL_NODE_SET_PARAMS_V2: Entry = Entry(75);
    pub const CU_GRAPH_EXEC_MEMCPY_NODE_SET_PARAMS: Entry = Entry(76);
    pub const CU_GRAPH_EXEC_MEMSET_NODE_SET_PARAMS: Entry = Entry(77);
    pub const CU_GRAPH_EXEC_NODE_SET_PARAMS: Entry = Entry(78);
    pub const CU_GRAPH_EXEC_UPDATE: Entry = Entry(79);
    pub const CU_GRAPH_EXEC_UPDATE_V2: Entry = Entry(80);
    pub const CU_GRAPH_EXTERNAL_SEMAPHORES_SIGNAL_NODE_SET_PARAMS: Entry = Entry(81);
    pub const CU_GRAPH_EXTERNAL_SEMAPHORES_WAIT_NODE_SET_PARAMS: Entry = Entry(82);
    pub const CU_GRAPH_HOST_NODE_SET_PARAMS: Entry = Entry(83);
    pub const CU_GRAPH_INSTANTIATE: Entry = Entry(84);
    pub const CU_GRAPH_INSTANTIATE_WITH_FLAGS: Entry = Entry(85);
    pub const CU_GRAPH_INSTANTIATE_WITH_PARAMS: Entry = Entry(86);
    pub const CU_GRAPH_INSTANTIATE_WITH_PARAMS_PTSZ: Entry = Entry(87);
    pub const CU_GRAPH_INSTANTIATE_V2: Entry = Entry(88);
    pub const CU_GRAPH_KERNEL_NODE_SET_PARAMS: Entry = Entry(89);
    pub const CU_GRAPH_KERNEL_NODE_SET_PARAMS_V2: Entry = Entry(90);
    pub const CU_GRAPH_LAUNCH: Entry = Entry(91);
    pub const CU_GRAPH_LAUNCH_PTSZ: Entry = Entry(92);
    pub const CU_GRAPH_MEMCPY_NODE_SET_PARAMS: Entry = Entry(93);
    pub const CU_GRAPH_MEMSET_NODE_SET_PARAMS: Entry = Entry(94);
    pub const CU_GRAPH_NODE_SET_PARAMS: Entry = Entry(95);
    pub const CU_GRAPH_UPLOAD: Entry = Entry(96);
    pub const CU_GRAPH_UPLOAD_PTSZ: Entry = Entry(97);
    pub const CU_GRAPHICS_MAP_RESOURCES: Entry = Entry(98);
    pub const CU_GRAPHICS_MAP_RESOURCES_PTSZ: Entry = Entry(99);
    pub const CU_GRAPHICS_UNMAP_RESOURCES: Entry = Entry(100);
    pub const CU_GRAPHICS_UNMAP_RESOURCES_PTSZ: Entry = Entry(101);
    pub const CU_GREEN_CTX_DESTROY: Entry = Entry(102);
    pub const CU_GREEN_CTX_RECORD_EVENT: Entry = Entry(103);
    pub const CU_GREEN_CTX_WAIT_EVENT: Entry = Entry(104);
    pub const CU_IMPORT_EXTERNAL_MEMORY: Entry = Entry(105);
    pub const CU_IMPORT_EXTERNAL_SEMAPHORE: Entry = Entry(106);
    pub const CU_INIT: Entry = Entry(107);
    pub const CU_IPC_CLOSE_MEM_HANDLE: Entry = Entry(108);
    pub const CU_IPC_GET_EVENT_HANDLE: Entry = Entry(109);
    pub const CU_IPC_GET_MEM_HANDLE: Entry = Entry(110);
    pub const CU_IPC_OPEN_EVENT_HANDLE: Entry = Entry(111);
    pub const CU_IPC_OPEN_MEM_HANDLE: Entry = Entry(112);
    pub const CU_IPC_OPEN_MEM_HANDLE_V2: Entry = Entry(113);
    pub const CU_LAUNCH: Entry = Entry(114);
    pub const CU_LAUNCH_COOPERATIVE_KERNEL: Entry = Entry(115);
    pub const CU_LAUNCH_COOPERATIVE_KERNEL_MULTI_DEVICE: Entry = Entry(116);
    pub const CU_LAUNCH_COOPERATIVE_KERNEL_PTSZ: Entry = Entry(117);
    pub const CU_LAUNCH_GRID: Entry = Entry(118);
    pub const CU_LAUNCH_GRID_ASYNC: Entry = Entry(119);
    pub const CU_LAUNCH_HOST_FUNC: Entry = Entry(120);
    pub const CU_LAUNCH_HOST_FUNC_PTSZ: Entry = Entry(121);
    pub const CU_LAUNCH_KERNEL: Entry = Entry(122);
    pub const CU_LAUNCH_KERNEL_EX: Entry = Entry(123);
    pub const CU_LAUNCH_KERNEL_EX_PTSZ: Entry = Entry(124);
    pub const CU_LAUNCH_KERNEL_PTSZ: Entry = Entry(125);
    pub const CU_LIBRARY_GET_MANAGED: Entry = Entry(126);
    pub const CU_MEM_ADDRESS_FREE: Entry = Entry(127);
    pub const CU_MEM_ADDRESS_RESERVE: Entry = Entry(128);
    pub const CU_MEM_ADVISE: Entry = Entry(129);
    pub const CU_MEM_ADVISE_V2: Entry = Entry(130);
    pub const CU_MEM_ALLOC: Entry = Entry(131);
    pub const CU_MEM_ALLOC_ASYNC: Entry = Entry(132);
    pub const CU_MEM_ALLOC_ASYNC_PTSZ: Entry = Entry(133);
    pub const CU_MEM_ALLOC_FROM_POOL_ASYNC: Entry = Entry(134);
    pub const CU_MEM_ALLOC_FROM_POOL_ASYNC_PTSZ: Entry = Entry(135);
    pub const CU_MEM_ALLOC_MANAGED: Entry = Entry(136);
    pub const CU_MEM_ALLOC_PITCH: Entry = Entry(137);
    pub const CU_MEM_ALLOC_PITCH_V2: Entry = Entry(138);
    pub const CU_MEM_ALLOC_V2: Entry = Entry(139);
    pub const CU_MEM_BATCH_DECOMPRESS_ASYNC: Entry = Entry(140);
    pub const CU_MEM_BATCH_DECOMPRESS_ASYNC_PTSZ: Entry = Entry(141);
    pub const CU_MEM_CREATE: Entry = Entry(142);
    pub const CU_MEM_DISCARD_AND_PREFETCH_BATCH_ASYNC: Entry = Entry(143);
    pub const CU_MEM_DISCARD_AND_PREFETCH_BATCH_ASYNC_PTSZ: Entry = Entry(144);
    pub const CU_MEM_DISCARD_BATCH_ASYNC: Entry = Entry(145);
    pub const CU_MEM_DISCARD_BATCH_ASYNC_PTSZ: Entry = Entry(146);
    pub const CU_MEM_EXPORT_TO_SHAREABLE_HANDLE: Entry = Entry(147);
    pub const CU_MEM_FREE: Entry = Entry(148);
    pub const CU_MEM_FREE_ASYNC: Entry = Entry(149);
    pub const CU_MEM_FREE_ASYNC_PTSZ: Entry = Entry(150);
    pub const CU_MEM_FREE_V2: Entry = Entry(151);
    pub const CU_MEM_GET_ACCESS: Entry = Entry(152);
    pub const CU_MEM_GET_ADDRESS_RANGE: Entry = Entry(153);
    pub const CU_MEM_GET_ADDRESS_RANGE_V2: Entry = Entry(154);
    pub const CU_MEM_GET_ALLOCATION_GRANULARITY: Entry = Entry(155);
    pub const CU_MEM_GET_ALLOCATION_PROPERTIES_FROM_HANDLE: Entry = Entry(156);
    pub const CU_MEM_GET_HANDLE_FOR_ADDRESS_RANGE: Entry = Entry(157);
    pub const CU_MEM_GET_INFO: Entry = Entry(158);
    pub const CU_MEM_GET_INFO_V2: Entry = Entry(159);
    pub const CU_MEM_IMPORT_FROM_SHAREABLE_HANDLE: Entry = Entry(160);
    pub const CU_MEM_MAP: Entry = Entry(161);
    pub const CU_MEM_MAP_ARRAY_ASYNC: Entry = Entry(162);
    pub const CU_MEM_MAP_ARRAY_ASYNC_PTSZ: Entry = Entry(163);
    pub const CU_MEM_POOL_CREATE: Entry = Entry(164);
    pub const CU_MEM_POOL_DESTROY: Entry = Entry(165);
    pub const CU_MEM_POOL_EXPORT_POINTER: Entry = Entry(166);
    pub const CU_MEM_POOL_EXPORT_TO_SHAREABLE_HANDLE: Entry = Entry(167);
    pub const CU_MEM_POOL_GET_ATTRIBUTE: Entry = Entry(168);
    pub const CU_MEM_POOL_IMPORT_FROM_SHAREABLE_HANDLE: Entry = Entry(169);
    pub const CU_MEM_POOL_IMPORT_POINTER: Entry = Entry(170);
    pub const CU_MEM_POOL_SET_ACCESS: Entry = Entry(171);
    pub const CU_MEM_POOL_SET_ATTRIBUTE: Entry = Entry(172);
    pub const CU_MEM_POOL_TRIM_TO: Entry = Entry(173);
    pub const CU_MEM_PREFETCH_ASYNC: Entry = Entry(174);
    pub const CU_MEM_PREFETCH_ASYNC_PTSZ: Entry = Entry(175);
    pub const CU_MEM_PREFETCH_ASYNC_V2: Entry = Entry(176);
    pub const CU_MEM_PREFETCH_ASYNC_V2_PTSZ: Entry = Entry(177);
    pub const CU_MEM_PREFETCH_BATCH_ASYNC: Entry = Entry(178);
    pub const CU_MEM_PREFETCH_BATCH_ASYNC_PTSZ: Entry = Entry(179);
    pub const CU_MEM_RANGE_GET_ATTRIBUTE: Entry = Entry(180);
    pub const CU_MEM_RANGE_GET_ATTRIBUTES: Entry = Entry(181);
    pub const CU_MEM_RELEASE: Entry = Entry(182);
    pub const CU_MEM_RETAIN_ALLOCATION_HANDLE: Entry = Entry(183);
    pub const CU_MEM_SET_ACCESS: Entry = Entry(184);
    pub const CU_MEM_UNMAP: Entry = Entry(185);
    pub const CU_MEMCPY: Entry = Entry(186);
    pub const CU_MEMCPY2_D: Entry = Entry(187);
    pub const CU_MEMCPY2_DASYNC: Entry = Entry(188);
    pub const CU_MEMCPY2_DASYNC_V2: Entry = Entry(189);
    pub const CU_MEMCPY2_DASYNC_V2_PTSZ: Entry = Entry(190);
    pub const CU_MEMCPY2_DUNALIGNED: Entry = Entry(191);
    pub const CU_MEMCPY2_DUNALIGNED_V2: Entry = Entry(192);
    pub const CU_MEMCPY2_DUNALIGNED_V2_PTDS: Entry = Entry(193);
    pub const CU_MEMCPY2_D_V2: Entry = Entry(194);
    pub const CU_MEMCPY2_D_V2_PTDS: Entry = Entry(195);
    pub const CU_MEMCPY3_D: Entry = Entry(196);
    pub const CU_MEMCPY3_DASYNC: Entry = Entry(197);
    pub const CU_MEMCPY3_DASYNC_V2: Entry = Entry(198);
    pub const CU_MEMCPY3_DASYNC_V2_PTSZ: Entry = Entry(199);
    pub const CU_MEMCPY3_DBATCH_ASYNC: Entry = Entry(200);
    pub const CU_MEMCPY3_DBATCH_ASYNC_PTSZ: Entry = Entry(201);
    pub const CU_MEMCPY3_DBATCH_ASYNC_V2: Entry = Entry(202);
    pub const CU_MEMCPY3_DBATCH_ASYNC_V2_PTSZ: Entry = Entry(203);
    pub const CU_MEMCPY3_DPEER: Entry = Entry(204);
    pub const CU_MEMCPY3_DPEER_ASYNC: Entry = Entry(205);
    pub const CU_MEMCPY3_DPEER_ASYNC_PTSZ: Entry = Entry(206);
    pub const CU_MEMCPY3_DPEER_PTDS: Entry = Entry(207);
    pub const CU_MEMCPY3_D_V2: Entry = Entry(208);
    pub const CU_MEMCPY3_D_V2_PTDS: Entry = Entry(209);
    pub const CU_MEMCPY_ASYNC: Entry = Entry(210);
    pub const CU_MEMCPY_ASYNC_PTSZ: Entry = Entry(211);
    pub const CU_MEMCPY_ATO_A: Entry = Entry(212);
    pub const CU_MEMCPY_ATO_A_V2: Entry = Entry(213);
    pub const CU_MEMCPY_ATO_A_V2_PTDS: Entry = Entry(214);
    pub const CU_MEMCPY_ATO_D: Entry = Entry(215);
    pub const CU_MEMCPY_ATO_D_V2: Entry = Entry(216);
    pub const CU_MEMCPY_ATO_D_V2_PTDS: Entry = Entry(217);
    pub const CU_MEMCPY_ATO_H: Entry = Entry(218);
    pub const CU_MEMCPY_ATO_HASYNC: Entry = Entry(219);
    pub const CU_MEMCPY_ATO_HASYNC_V2: Entry = Entry(220);
    pub const CU_MEMCPY_ATO_HASYNC_V2_PTSZ: Entry = Entry(221);
    pub const CU_MEMCPY_ATO_H_V2: Entry = Entry(222);
    pub const CU_MEMCPY_ATO_H_V2_PTDS: Entry = Entry(223);
    pub const CU_MEMCPY_BATCH_ASYNC: Entry = Entry(224);
    pub const CU_MEMCPY_BATCH_ASYNC_PTSZ: Entry = Entry(225);
    pub const CU_MEMCPY_BATCH_ASYNC_V2: Entry = Entry(226);
    pub const CU_MEMCPY_BATCH_ASYNC_V2_PTSZ: Entry = Entry(227);
    pub const CU_MEMCPY_DTO_A: Entry = Entry(228);
    pub const CU_MEMCPY_DTO_A_V2: Entry = Entry(229);
    pub const CU_MEMCPY_DTO_A_V2_PTDS: Entry = Entry(230);
    pub const CU_MEMCPY_DTO_D: Entry = Entry(231);
    pub const CU_MEMCPY_DTO_DASYNC: Entry = Entry(232);
    pub const CU_MEMCPY_DTO_DASYNC_V2: Entry = Entry(233);
    pub const CU_MEMCPY_DTO_DASYNC_V2_PTSZ: Entry = Entry(234);
    pub const CU_MEMCPY_DTO_D_V2: Entry = Entry(235);
    pub const CU_MEMCPY_DTO_D_V2_PTDS: Entry = Entry(236);
    pub const CU_MEMCPY_DTO_H: Entry = Entry(237);
    pub const CU_MEMCPY_DTO_HASYNC: Entry = Entry(238);
    pub const CU_MEMCPY_DTO_HASYNC_V2: Entry = Entry(239);
    pub const CU_MEMCPY_DTO_HASYNC_V2_PTSZ: Entry = Entry(240);
    pub const CU_MEMCPY_DTO_H_V2: Entry = Entry(241);
    pub const CU_MEMCPY_DTO_H_V2_PTDS: Entry = Entry(242);
    pub const CU_MEMCPY_HTO_A: Entry = Entry(243);
    pub const CU_MEMCPY_HTO_AASYNC: Entry = Entry(244);
    pub const CU_MEMCPY_HTO_AASYNC_V2: Entry = Entry(245);
    pub const CU_MEMCPY_HTO_AASYNC_V2_PTSZ: Entry = Entry(246);
    pub const CU_MEMCPY_HTO_A_V2: Entry = Entry(247);
    pub const CU_MEMCPY_HTO_A_V2_PTDS: Entry = Entry(248);
    pub const CU_MEMCPY_HTO_D: Entry = Entry(249);
    pub const CU_MEMCPY_HTO_DASYNC: Entry = Entry(250);
    pub const CU_MEMCPY_HTO_DASYNC_V2: Entry = Entry(251);
    pub const CU_MEMCPY_HTO_DASYNC_V2_PTSZ: Entry = Entry(252);
    pub const CU_MEMCPY_HTO_D_V2: Entry = Entry(253);
    pub const CU_MEMCPY_HTO_D_V2_PTDS: Entry = Entry(254);
    pub const CU_MEMCPY_PEER: Entry = Entry(255);
    pub const CU_MEMCPY_PEER_ASYNC: Entry = Entry(256);
    pub const CU_MEMCPY_PEER_ASYNC_PTSZ: Entry = Entry(257);
    pub const CU_MEMCPY_PEER_PTDS: Entry = Entry(258);
    pub const CU_MEMCPY_PTDS: Entry = Entry(259);
    pub const CU_MEMSET_D16: Entry = Entry(260);
    pub const CU_MEMSET_D16_ASYNC: Entry = Entry(261);
    pub const CU_MEMSET_D16_ASYNC_PTSZ: Entry = Entry(262);
    pub const CU_MEMSET_D16_V2: Entry = Entry(263);
    pub const CU_MEMSET_D16_V2_PTDS: Entry = Entry(264);
    pub const CU_MEMSET_D2_D16: Entry = Entry(265);
    pub const CU_MEMSET_D2_D16_ASYNC: Entry = Entry(266);
    pub const CU_MEMSET_D2_D16_ASYNC_PTSZ: Entry = Entry(267);
    pub const CU_MEMSET_D2_D16_V2: Entry = Entry(268);
    pub const CU_MEMSET_D2_D16_V2_PTDS: Entry = Entry(269);
    pub const CU_MEMSET_D2_D32: Entry = Entry(270);
    pub const CU_MEMSET_D2_D32_ASYNC: Entry = Entry(271);
    pub const CU_MEMSET_D2_D32_ASYNC_PTSZ: Entry = Entry(272);
    pub const CU_MEMSET_D2_D32_V2: Entry = Entry(273);
    pub const CU_MEMSET_D2_D32_V2_PTDS: Entry = Entry(274);
    pub const CU_MEMSET_D2_D8: Entry = Entry(275);
    pub const CU_MEMSET_D2_D8_ASYNC: Entry = Entry(276);
    pub const CU_MEMSET_D2_D8_ASYNC_PTSZ: Entry = Entry(277);
    pub const CU_MEMSET_D2_D8_V2: Entry = Entry(278);
    pub const CU_MEMSET_D2_D8_V2_PTDS: Entry = Entry(279);
    pub const CU_MEMSET_D32: Entry = Entry(280);
    pub const CU_MEMSET_D32_ASYNC: Entry = Entry(281);
    pub const CU_MEMSET_D32_ASYNC_PTSZ: Entry = Entry(282);
    pub const CU_MEMSET_D32_V2: Entry = Entry(283);
    pub const CU_MEMSET_D32_V2_PTDS: Entry = Entry(284);
    pub const CU_MEMSET_D8: Entry = Entry(285);
    pub const CU_MEMSET_D8_ASYNC: Entry = Entry(286);
    pub const CU_MEMSET_D8_ASYNC_PTSZ: Entry = Entry(287);
    pub const CU_MEMSET_D8_V2: Entry = Entry(288);
    pub const CU_MEMSET_D8_V2_PTDS: Entry = Entry(289);
    pub const CU_MIPMAPPED_ARRAY_CREATE: Entry = Entry(290);
    pub const CU_MIPMAPPED_ARRAY_DESTROY: Entry = Entry(291);
    pub const CU_MULTICAST_ADD_DEVICE: Entry = Entry(292);
    pub const CU_MULTICAST_BIND_ADDR: Entry = Entry(293);
    pub const CU_MULTICAST_BIND_MEM: Entry = Entry(294);
    pub const CU_MULTICAST_CREATE: Entry = Entry(295);
    pub const CU_MULTICAST_UNBIND: Entry = Entry(296);
    pub const CU_POINTER_GET_ATTRIBUTE: Entry = Entry(297);
    pub const CU_POINTER_GET_ATTRIBUTES: Entry = Entry(298);
    pub const CU_POINTER_SET_ATTRIBUTE: Entry = Entry(299);
    pub const CU_SIGNAL_EXTERNAL_SEMAPHORES_ASYNC: Entry = Entry(300);
    pub const CU_SIGNAL_EXTERNAL_SEMAPHORES_ASYNC_PTSZ: Entry = Entry(301);
    pub const CU_STREAM_ADD_CALLBACK: Entry = Entry(302);
    pub const CU_STREAM_ADD_CALLBACK_PTSZ: Entry = Entry(303);
    pub const CU_STREAM_ATTACH_MEM_ASYNC: Entry = Entry(304);
    pub const CU_STREAM_ATTACH_MEM_ASYNC_PTSZ: Entry = Entry(305);
    pub const CU_STREAM_BATCH_MEM_OP: Entry = Entry(306);
    pub const CU_STREAM_BATCH_MEM_OP_PTSZ: Entry = Entry(307);
    pub const CU_STREAM_BATCH_MEM_OP_V2: Entry = Entry(308);
    pub const CU_STREAM_BATCH_MEM_OP_V2_PTSZ: Entry = Entry(309);
    pub const CU_STREAM_BEGIN_CAPTURE: Entry = Entry(310);
    pub const CU_STREAM_BEGIN_CAPTURE_TO_GRAPH: Entry = Entry(311);
    pub const CU_STREAM_BEGIN_CAPTURE_TO_GRAPH_PTSZ: Entry = Entry(312);
    pub const CU_STREAM_BEGIN_CAPTURE_PTSZ: Entry = Entry(313);
    pub const CU_STREAM_BEGIN_CAPTURE_V2: Entry = Entry(314);
    pub const CU_STREAM_BEGIN_CAPTURE_V2_PTSZ: Entry = Entry(315);
    pub const CU_STREAM_DESTROY: Entry = Entry(316);
    pub const CU_STREAM_DESTROY_V2: Entry = Entry(317);
    pub const CU_STREAM_END_CAPTURE: Entry = Entry(318);
    pub const CU_STREAM_END_CAPTURE_PTSZ: Entry = Entry(319);
    pub const CU_STREAM_WAIT_EVENT: Entry = Entry(320);
    pub const CU_STREAM_WAIT_EVENT_PTSZ: Entry = Entry(321);
    pub const CU_STREAM_WAIT_VALUE32: Entry = Entry(322);
    pub const CU_STREAM_WAIT_VALUE32_PTSZ: Entry = Entry(323);
    pub const CU_STREAM_WAIT_VALUE32_V2: Entry = Entry(324);
    pub const CU_STREAM_WAIT_VALUE32_V2_PTSZ: Entry = Entry(325);
    pub const CU_STREAM_WAIT_VALUE64: Entry = Entry(326);
    pub const CU_STREAM_WAIT_VALUE64_PTSZ: Entry = Entry(327);
    pub const CU_STREAM_WAIT_VALUE64_V2: Entry = Entry(328);
    pub const CU_STREAM_WAIT_VALUE64_V2_PTSZ: Entry = Entry(329);
    pub const CU_STREAM_WRITE_VALUE32: Entry = Entry(330);
    pub const CU_STREAM_WRITE_VALUE32_PTSZ: Entry = Entry(331);
    pub const CU_STREAM_WRITE_VALUE32_V2: Entry = Entry(332);
    pub const CU_STREAM_WRITE_VALUE32_V2_PTSZ: Entry = Entry(333);
    pub const CU_STREAM_WRITE_VALUE64: Entry = Entry(334);
    pub const CU_STREAM_WRITE_VALUE64_PTSZ: Entry = Entry(335);
    pub const CU_STREAM_WRITE_VALUE64_V2: Entry = Entry(336);
    pub const CU_STREAM_WRITE_VALUE64_V2_PTSZ: Entry = Entry(337);
    pub const CU_SURF_OBJECT_CREATE: Entry = Entry(338);
    pub const CU_TENSOR_MAP_ENCODE_IM2COL: Entry = Entry(339);
    pub const CU_TENSOR_MAP_ENCODE_IM2COL_WIDE: Entry = Entry(340);
    pub const CU_TENSOR_MAP_ENCODE_TILED: Entry = Entry(341);
    pub const CU_TENSOR_MAP_REPLACE_ADDRESS: Entry = Entry(342);
    pub const CU_TEX_OBJECT_CREATE: Entry = Entry(343);
    pub const CU_TEX_REF_SET_ADDRESS: Entry = Entry(344);
    pub const CU_TEX_REF_SET_ADDRESS2_D: Entry = Entry(345);
    pub const CU_TEX_REF_SET_ADDRESS2_D_V2: Entry = Entry(346);
    pub const CU_TEX_REF_SET_ADDRESS2_D_V3: Entry = Entry(347);
    pub const CU_TEX_REF_SET_ADDRESS_V2: Entry = Entry(348);
    pub const CU_THREAD_EXCHANGE_STREAM_CAPTURE_MODE: Entry = Entry(349);
    pub const CU_WAIT_EXTERNAL_SEMAPHORES_ASYNC: Entry = Entry(350);
    pub const CU_WAIT_EXTERNAL_SEMAPHORES_ASYNC_PTSZ: Entry = Entry(351);
}

/// How many entry points have a number.
pub const COUNT: usize = 352;

/// Their names, sorted.
#[rustfmt::skip]
pub static NAMES: [&std::ffi::CStr; COUNT] = [
    c"cuArray3DCreate",
    c"cuArray3DCreate_v2",
    c"cuArrayCreate",
    c"cuArrayCreate_v2",
    c"cuArrayDestroy",
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
    c"cuCtxGetCurrent",
    c"cuCtxGetDevice",
    c"cuCtxGetLimit",
    c"cuCtxPopCurrent_v2",
    c"cuCtxPushCurrent_v2",
    c"cuCtxRecordEvent",
    c"cuCtxSetLimit",
    c"cuCtxSynchronize",
    c"cuCtxWaitEvent",
    c"cuDestroyExternalMemory",
    c"cuDestroyExternalSemaphore",
    c"cuDeviceGet",
    c"cuDeviceGetAttribute",
    c"cuDeviceGetCount",
    c"cuDeviceGetDefaultMemPool",
    c"cuDeviceGetGraphMemAttribute",
    c"cuDeviceGetName",
    c"cuDeviceGetUuid",
    c"cuDeviceGetUuid_v2",
    c"cuDeviceGraphMemTrim",
    c"cuDevicePrimaryCtxGetState",
    c"cuDevicePrimaryCtxRelease",
    c"cuDevicePrimaryCtxRelease_v2",
    c"cuDevicePrimaryCtxReset",
    c"cuDevicePrimaryCtxReset_v2",
    c"cuDevicePrimaryCtxRetain",
    c"cuDeviceTotalMem_v2",
    c"cuEventRecord",
    c"cuEventRecordWithFlags",
    c"cuEventRecordWithFlags_ptsz",
    c"cuEventRecord_ptsz",
    c"cuFlushGPUDirectRDMAWrites",
    c"cuGetProcAddress",
    c"cuGetProcAddress_v2",
    c"cuGraphAddBatchMemOpNode",
    c"cuGraphAddChildGraphNode",
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
    c"cuGraphBatchMemOpNodeSetParams",
    c"cuGraphExecBatchMemOpNodeSetParams",
    c"cuGraphExecChildGraphNodeSetParams",
    c"cuGraphExecEventRecordNodeSetEvent",
    c"cuGraphExecEventWaitNodeSetEvent",
    c"cuGraphExecExternalSemaphoresSignalNodeSetParams",
    c"cuGraphExecExternalSemaphoresWaitNodeSetParams",
    c"cuGraphExecHostNodeSetParams",
    c"cuGraphExecKernelNodeSetParams",
    c"cuGraphExecKernelNodeSetParams_v2",
    c"cuGraphExecMemcpyNodeSetParams",
    c"cuGraphExecMemsetNodeSetParams",
    c"cuGraphExecNodeSetParams",
    c"cuGraphExecUpdate",
    c"cuGraphExecUpdate_v2",
    c"cuGraphExternalSemaphoresSignalNodeSetParams",
    c"cuGraphExternalSemaphoresWaitNodeSetParams",
    c"cuGraphHostNodeSetParams",
    c"cuGraphInstantiate",
    c"cuGraphInstantiateWithFlags",
    c"cuGraphInstantiateWithParams",
    c"cuGraphInstantiateWithParams_ptsz",
    c"cuGraphInstantiate_v2",
    c"cuGraphKernelNodeSetParams",
    c"cuGraphKernelNodeSetParams_v2",
    c"cuGraphLaunch",
    c"cuGraphLaunch_ptsz",
    c"cuGraphMemcpyNodeSetParams",
    c"cuGraphMemsetNodeSetParams",
    c"cuGraphNodeSetParams",
    c"cuGraphUpload",
    c"cuGraphUpload_ptsz",
    c"cuGraphicsMapResources",
    c"cuGraphicsMapResources_ptsz",
    c"cuGraphicsUnmapResources",
    c"cuGraphicsUnmapResources_ptsz",
    c"cuGreenCtxDestroy",
    c"cuGreenCtxRecordEvent",
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
    c"cuLaunch",
    c"cuLaunchCooperativeKernel",
    c"cuLaunchCooperativeKernelMultiDevice",
    c"cuLaunchCooperativeKernel_ptsz",
    c"cuLaunchGrid",
    c"cuLaunchGridAsync",
    c"cuLaunchHostFunc",
    c"cuLaunchHostFunc_ptsz",
    c"cuLaunchKernel",
    c"cuLaunchKernelEx",
    c"cuLaunchKernelEx_ptsz",
    c"cuLaunchKernel_ptsz",
    c"cuLibraryGetManaged",
    c"cuMemAddressFree",
    c"cuMemAddressReserve",
    c"cuMemAdvise",
    c"cuMemAdvise_v2",
    c"cuMemAlloc",
    c"cuMemAllocAsync",
    c"cuMemAllocAsync_ptsz",
    c"cuMemAllocFromPoolAsync",
    c"cuMemAllocFromPoolAsync_ptsz",
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
    c"cuMemFree_v2",
    c"cuMemGetAccess",
    c"cuMemGetAddressRange",
    c"cuMemGetAddressRange_v2",
    c"cuMemGetAllocationGranularity",
    c"cuMemGetAllocationPropertiesFromHandle",
    c"cuMemGetHandleForAddressRange",
    c"cuMemGetInfo",
    c"cuMemGetInfo_v2",
    c"cuMemImportFromShareableHandle",
    c"cuMemMap",
    c"cuMemMapArrayAsync",
    c"cuMemMapArrayAsync_ptsz",
    c"cuMemPoolCreate",
    c"cuMemPoolDestroy",
    c"cuMemPoolExportPointer",
    c"cuMemPoolExportToShareableHandle",
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
    c"cuMulticastAddDevice",
    c"cuMulticastBindAddr",
    c"cuMulticastBindMem",
    c"cuMulticastCreate",
    c"cuMulticastUnbind",
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
    c"cuStreamBeginCaptureToGraph",
    c"cuStreamBeginCaptureToGraph_ptsz",
    c"cuStreamBeginCapture_ptsz",
    c"cuStreamBeginCapture_v2",
    c"cuStreamBeginCapture_v2_ptsz",
    c"cuStreamDestroy",
    c"cuStreamDestroy_v2",
    c"cuStreamEndCapture",
    c"cuStreamEndCapture_ptsz",
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
    c"cuTensorMapEncodeIm2col",
    c"cuTensorMapEncodeIm2colWide",
    c"cuTensorMapEncodeTiled",
    c"cuTensorMapReplaceAddress",
    c"cuTexObjectCreate",
    c"cuTexRefSetAddress",
    c"cuTexRefSetAddress2D",
    c"cuTexRefSetAddress2D_v2",
    c"cuTexRefSetAddress2D_v3",
    c"cuTexRefSetAddress_v2",
    c"cuThreadExchangeStreamCaptureMode",
    c"cuWaitExternalSemaphoresAsync",
    c"cuWaitExternalSemaphoresAsync_ptsz",
];

/// What takes the place of each; null for those that are only called by the shim itself.
#[rustfmt::skip]
pub static WRAPPERS: [Wrapper; COUNT] = [
    Wrapper(exports::cuArray3DCreate as *const ()),
    Wrapper(exports::cuArray3DCreate_v2 as *const ()),
    Wrapper(exports::cuArrayCreate as *const ()),
    Wrapper(exports::cuArrayCreate_v2 as *const ()),
    Wrapper(exports::cuArrayDestroy as *const ()),
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
    Wrapper(std::ptr::null()),
    Wrapper(std::ptr::null()),
    Wrapper(exports::cuCtxGetLimit as *const ()),
    Wrapper(std::ptr::null()),
    Wrapper(std::ptr::null()),
    Wrapper(exports::cuCtxRecordEvent as *const ()),
    Wrapper(exports::cuCtxSetLimit as *const ()),
    Wrapper(std::ptr::null()),
    Wrapper(exports::cuCtxWaitEvent as *const ()),
    Wrapper(exports::cuDestroyExternalMemory as *const ()),
    Wrapper(exports::cuDestroyExternalSemaphore as *const ()),
    Wrapper(std::ptr::null()),
    Wrapper(std::ptr::null()),
    Wrapper(std::ptr::null()),
    Wrapper(std::ptr::null()),
    Wrapper(std::ptr::null()),
    Wrapper(std::ptr::null()),
    Wrapper(std::ptr::null()),
    Wrapper(std::ptr::null()),
    Wrapper(exports::cuDeviceGraphMemTrim as *const ()),
    Wrapper(std::ptr::null()),
    Wrapper(exports::cuDevicePrimaryCtxRelease as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxRelease_v2 as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxReset as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxReset_v2 as *const ()),
    Wrapper(exports::cuDevicePrimaryCtxRetain as *const ()),
    Wrapper(std::ptr::null()),
    Wrapper(exports::cuEventRecord as *const ()),
    Wrapper(exports::cuEventRecordWithFlags as *const ()),
    Wrapper(exports::cuEventRecordWithFlags_ptsz as *const ()),
    Wrapper(exports::cuEventRecord_ptsz as *const ()),
    Wrapper(exports::cuFlushGPUDirectRDMAWrites as *const ()),
    Wrapper(exports::cuGetProcAddress as *const ()),
    Wrapper(exports::cuGetProcAddress_v2 as *const ()),
    Wrapper(exports::cuGraphAddBatchMemOpNode as *const ()),
    Wrapper(exports::cuGraphAddChildGraphNode as *const ()),
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
    Wrapper(exports::cuGraphBatchMemOpNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecBatchMemOpNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecChildGraphNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecEventRecordNodeSetEvent as *const ()),
    Wrapper(exports::cuGraphExecEventWaitNodeSetEvent as *const ()),
    Wrapper(exports::cuGraphExecExternalSemaphoresSignalNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecExternalSemaphoresWaitNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecHostNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecKernelNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecKernelNodeSetParams_v2 as *const ()),
    Wrapper(exports::cuGraphExecMemcpyNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecMemsetNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExecUpdate as *const ()),
    Wrapper(exports::cuGraphExecUpdate_v2 as *const ()),
    Wrapper(exports::cuGraphExternalSemaphoresSignalNodeSetParams as *const ()),
    Wrapper(exports::cuGraphExternalSemaphoresWaitNodeSetParams as *const ()),
    Wrapper(exports::cuGraphHostNodeSetParams as *const ()),
    Wrapper(exports::cuGraphInstantiate as *const ()),
    Wrapper(exports::cuGraphInstantiateWithFlags as *const ()),
    Wrapper(exports::cuGraphInstantiateWithParams as *const ()),
    Wrapper(exports::cuGraphInstantiateWithParams_ptsz as *const ()),
    Wrapper(exports::cuGraphInstantiate_v2 as *const ()),
    Wrapper(exports::cuGraphKernelNodeSetParams as *const ()),
    Wrapper(exports::cuGraphKernelNodeSetParams_v2 as *const ()),
    Wrapper(exports::cuGraphLaunch as *const ()),
    Wrapper(exports::cuGraphLaunch_ptsz as *const ()),
    Wrapper(exports::cuGraphMemcpyNodeSetParams as *const ()),
    Wrapper(exports::cuGraphMemsetNodeSetParams as *const ()),
    Wrapper(exports::cuGraphNodeSetParams as *const ()),
    Wrapper(exports::cuGraphUpload as *const ()),
    Wrapper(exports::cuGraphUpload_ptsz as *const ()),
    Wrapper(exports::cuGraphicsMapResources as *const ()),
    Wrapper(exports::cuGraphicsMapResources_ptsz as *const ()),
    Wrapper(exports::cuGraphicsUnmapResources as *const ()),
    Wrapper(exports::cuGraphicsUnmapResources_ptsz as *const ()),
    Wrapper(exports::cuGreenCtxDestroy as *const ()),
    Wrapper(exports::cuGreenCtxRecordEvent as *const ()),
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
    Wrapper(exports::cuLaunch as *const ()),
    Wrapper(exports::cuLaunchCooperativeKernel as *const ()),
    Wrapper(exports::cuLaunchCooperativeKernelMultiDevice as *const ()),
    Wrapper(exports::cuLaunchCooperativeKernel_ptsz as *const ()),
    Wrapper(exports::cuLaunchGrid as *const ()),
    Wrapper(exports::cuLaunchGridAsync as *const ()),
    Wrapper(exports::cuLaunchHostFunc as *const ()),
    Wrapper(exports::cuLaunchHostFunc_ptsz as *const ()),
    Wrapper(exports::cuLaunchKernel as *const ()),
    Wrapper(exports::cuLaunchKernelEx as *const ()),
    Wrapper(exports::cuLaunchKernelEx_ptsz as *const ()),
    Wrapper(exports::cuLaunchKernel_ptsz as *const ()),
    Wrapper(exports::cuLibraryGetManaged as *const ()),
    Wrapper(exports::cuMemAddressFree as *const ()),
    Wrapper(exports::cuMemAddressReserve as *const ()),
    Wrapper(exports::cuMemAdvise as *const ()),
    Wrapper(exports::cuMemAdvise_v2 as *const ()),
    Wrapper(exports::cuMemAlloc as *const ()),
    Wrapper(exports::cuMemAllocAsync as *const ()),
    Wrapper(exports::cuMemAllocAsync_ptsz as *const ()),
    Wrapper(exports::cuMemAllocFromPoolAsync as *const ()),
    Wrapper(exports::cuMemAllocFromPoolAsync_ptsz as *const ()),
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
    Wrapper(exports::cuMemFree_v2 as *const ()),
    Wrapper(exports::cuMemGetAccess as *const ()),
    Wrapper(exports::cuMemGetAddressRange as *const ()),
    Wrapper(exports::cuMemGetAddressRange_v2 as *const ()),
    Wrapper(std::ptr::null()),
    Wrapper(exports::cuMemGetAllocationPropertiesFromHandle as *const ()),
    Wrapper(exports::cuMemGetHandleForAddressRange as *const ()),
    Wrapper(exports::cuMemGetInfo as *const ()),
    Wrapper(exports::cuMemGetInfo_v2 as *const ()),
    Wrapper(exports::cuMemImportFromShareableHandle as *const ()),
    Wrapper(exports::cuMemMap as *const ()),
    Wrapper(exports::cuMemMapArrayAsync as *const ()),
    Wrapper(exports::cuMemMapArrayAsync_ptsz as *const ()),
    Wrapper(exports::cuMemPoolCreate as *const ()),
    Wrapper(exports::cuMemPoolDestroy as *const ()),
    Wrapper(exports::cuMemPoolExportPointer as *const ()),
    Wrapper(exports::cuMemPoolExportToShareableHandle as *const ()),
    Wrapper(std::ptr::null()),
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
    Wrapper(exports::cuMulticastAddDevice as *const ()),
    Wrapper(exports::cuMulticastBindAddr as *const ()),
    Wrapper(exports::cuMulticastBindMem as *const ()),
    Wrapper(exports::cuMulticastCreate as *const ()),
    Wrapper(exports::cuMulticastUnbind as *const ()),
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
    Wrapper(exports::cuStreamBeginCaptureToGraph as *const ()),
    Wrapper(exports::cuStreamBeginCaptureToGraph_ptsz as *const ()),
    Wrapper(exports::cuStreamBeginCapture_ptsz as *const ()),
    Wrapper(exports::cuStreamBeginCapture_v2 as *const ()),
    Wrapper(exports::cuStreamBeginCapture_v2_ptsz as *const ()),
    Wrapper(exports::cuStreamDestroy as *const ()),
    Wrapper(exports::cuStreamDestroy_v2 as *const ()),
    Wrapper(exports::cuStreamEndCapture as *const ()),
    Wrapper(exports::cuStreamEndCapture_ptsz as *const ()),
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
    Wrapper(exports::cuTensorMapEncodeIm2col as *const ()),
    Wrapper(exports::cuTensorMapEncodeIm2colWide as *const ()),
    Wrapper(exports::cuTensorMapEncodeTiled as *const ()),
    Wrapper(exports::cuTensorMapReplaceAddress as *const ()),
    Wrapper(exports::cuTexObjectCreate as *const ()),
    Wrapper(exports::cuTexRefSetAddress as *const ()),
    Wrapper(exports::cuTexRefSetAddress2D as *const ()),
    Wrapper(exports::cuTexRefSetAddress2D_v2 as *const ()),
    Wrapper(exports::cuTexRefSetAddress2D_v3 as *const ()),
    Wrapper(exports::cuTexRefSetAddress_v2 as *const ()),
    Wrapper(std::ptr::null()),
    Wrapper(exports::cuWaitExternalSemaphoresAsync as *const ()),
    Wrapper(exports::cuWaitExternalSemaphoresAsync_ptsz as *const ()),
];

/// Names without version and stream suffix of what is gated or tracked, sorted.
#[rustfmt::skip]
pub static GUARDED: [&str; 195] = [
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
    "cuCtxGetLimit",
    "cuCtxRecordEvent",
    "cuCtxSetLimit",
    "cuCtxWaitEvent",
    "cuDestroyExternalMemory",
    "cuDestroyExternalSemaphore",
    "cuDeviceGraphMemTrim",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxReset",
    "cuDevicePrimaryCtxRetain",
    "cuEventRecord",
    "cuEventRecordWithFlags",
    "cuFlushGPUDirectRDMAWrites",
    "cuGetProcAddress",
    "cuGraphAddBatchMemOpNode",
    "cuGraphAddChildGraphNode",
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
    "cuGraphBatchMemOpNodeSetParams",
    "cuGraphExecBatchMemOpNodeSetParams",
    "cuGraphExecChildGraphNodeSetParams",
    "cuGraphExecEventRecordNodeSetEvent",
    "cuGraphExecEventWaitNodeSetEvent",
    "cuGraphExecExternalSemaphoresSignalNodeSetParams",
    "cuGraphExecExternalSemaphoresWaitNodeSetParams",
    "cuGraphExecHostNodeSetParams",
    "cuGraphExecKernelNodeSetParams",
    "cuGraphExecMemcpyNodeSetParams",
    "cuGraphExecMemsetNodeSetParams",
    "cuGraphExecNodeSetParams",
    "cuGraphExecUpdate",
    "cuGraphExternalSemaphoresSignalNodeSetParams",
    "cuGraphExternalSemaphoresWaitNodeSetParams",
    "cuGraphHostNodeSetParams",
    "cuGraphInstantiate",
    "cuGraphInstantiateWithFlags",
    "cuGraphInstantiateWithParams",
    "cuGraphKernelNodeSetParams",
    "cuGraphLaunch",
    "cuGraphMemcpyNodeSetParams",
    "cuGraphMemsetNodeSetParams",
    "cuGraphNodeSetParams",
    "cuGraphUpload",
    "cuGraphicsMapResources",
    "cuGraphicsUnmapResources",
    "cuGreenCtxDestroy",
    "cuGreenCtxRecordEvent",
    "cuGreenCtxWaitEvent",
    "cuImportExternalMemory",
    "cuImportExternalSemaphore",
    "cuInit",
    "cuIpcCloseMemHandle",
    "cuIpcGetEventHandle",
    "cuIpcGetMemHandle",
    "cuIpcOpenEventHandle",
    "cuIpcOpenMemHandle",
    "cuLaunch",
    "cuLaunchCooperativeKernel",
    "cuLaunchCooperativeKernelMultiDevice",
    "cuLaunchGrid",
    "cuLaunchGridAsync",
    "cuLaunchHostFunc",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuLibraryGetManaged",
    "cuMemAddressFree",
    "cuMemAddressReserve",
    "cuMemAdvise",
    "cuMemAlloc",
    "cuMemAllocAsync",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocManaged",
    "cuMemAllocPitch",
    "cuMemBatchDecompressAsync",
    "cuMemCreate",
    "cuMemDiscardAndPrefetchBatchAsync",
    "cuMemDiscardBatchAsync",
    "cuMemExportToShareableHandle",
    "cuMemFree",
    "cuMemFreeAsync",
    "cuMemGetAccess",
    "cuMemGetAddressRange",
    "cuMemGetAllocationPropertiesFromHandle",
    "cuMemGetHandleForAddressRange",
    "cuMemGetInfo",
    "cuMemImportFromShareableHandle",
    "cuMemMap",
    "cuMemMapArrayAsync",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolExportPointer",
    "cuMemPoolExportToShareableHandle",
    "cuMemPoolImportFromShareableHandle",
    "cuMemPoolImportPointer",
    "cuMemPoolSetAccess",
    "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo",
    "cuMemPrefetchAsync",
    "cuMemPrefetchBatchAsync",
    "cuMemRangeGetAttribute",
    "cuMemRangeGetAttributes",
    "cuMemRelease",
    "cuMemRetainAllocationHandle",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuMemcpy",
    "cuMemcpy2D",
    "cuMemcpy2DAsync",
    "cuMemcpy2DUnaligned",
    "cuMemcpy3D",
    "cuMemcpy3DAsync",
    "cuMemcpy3DBatchAsync",
    "cuMemcpy3DPeer",
    "cuMemcpy3DPeerAsync",
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
    "cuMipmappedArrayCreate",
    "cuMipmappedArrayDestroy",
    "cuMulticastAddDevice",
    "cuMulticastBindAddr",
    "cuMulticastBindMem",
    "cuMulticastCreate",
    "cuMulticastUnbind",
    "cuPointerGetAttribute",
    "cuPointerGetAttributes",
    "cuPointerSetAttribute",
    "cuSignalExternalSemaphoresAsync",
    "cuStreamAddCallback",
    "cuStreamAttachMemAsync",
    "cuStreamBatchMemOp",
    "cuStreamBeginCapture",
    "cuStreamBeginCaptureToGraph",
    "cuStreamDestroy",
    "cuStreamEndCapture",
    "cuStreamWaitEvent",
    "cuStreamWaitValue32",
    "cuStreamWaitValue64",
    "cuStreamWriteValue32",
    "cuStreamWriteValue64",
    "cuSurfObjectCreate",
    "cuTensorMapEncodeIm2col",
    "cuTensorMapEncodeIm2colWide",
    "cuTensorMapEncodeTiled",
    "cuTensorMapReplaceAddress",
    "cuTexObjectCreate",
    "cuTexRefSetAddress",
    "cuTexRefSetAddress2D",
    "cuWaitExternalSemaphoresAsync",
];

/// The same of what passes, sorted.
#[rustfmt::skip]
pub static PASSED: [&str; 252] = [
    "cuArray3DGetDescriptor",
    "cuArrayGetDescriptor",
    "cuArrayGetMemoryRequirements",
    "cuArrayGetPlane",
    "cuArrayGetSparseProperties",
    "cuCheckpointProcessCheckpoint",
    "cuCheckpointProcessGetRestoreThreadId",
    "cuCheckpointProcessGetState",
    "cuCheckpointProcessLock",
    "cuCheckpointProcessRestore",
    "cuCheckpointProcessUnlock",
    "cuCoredumpGetAttribute",
    "cuCoredumpGetAttributeGlobal",
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
    "cuCtxGetSharedMemConfig",
    "cuCtxGetStreamPriorityRange",
    "cuCtxPopCurrent",
    "cuCtxPushCurrent",
    "cuCtxResetPersistingL2Cache",
    "cuCtxSetCacheConfig",
    "cuCtxSetCurrent",
    "cuCtxSetFlags",
    "cuCtxSetSharedMemConfig",
    "cuCtxSynchronize",
    "cuDevResourceGenerateDesc",
    "cuDevSmResourceSplitByCount",
    "cuDeviceCanAccessPeer",
    "cuDeviceComputeCapability",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetByPCIBusId",
    "cuDeviceGetCount",
    "cuDeviceGetDefaultMemPool",
    "cuDeviceGetDevResource",
    "cuDeviceGetExecAffinitySupport",
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
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxSetFlags",
    "cuDeviceRegisterAsyncNotification",
    "cuDeviceSetGraphMemAttribute",
    "cuDeviceSetMemPool",
    "cuDeviceTotalMem",
    "cuDeviceUnregisterAsyncNotification",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy",
    "cuEventElapsedTime",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuExternalMemoryGetMappedBuffer",
    "cuExternalMemoryGetMappedMipmappedArray",
    "cuFuncGetAttribute",
    "cuFuncGetModule",
    "cuFuncGetName",
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
    "cuGetExportTable",
    "cuGraphAddDependencies",
    "cuGraphBatchMemOpNodeGetParams",
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
    "cuGraphExecDestroy",
    "cuGraphExecGetFlags",
    "cuGraphExternalSemaphoresSignalNodeGetParams",
    "cuGraphExternalSemaphoresWaitNodeGetParams",
    "cuGraphGetEdges",
    "cuGraphGetNodes",
    "cuGraphGetRootNodes",
    "cuGraphHostNodeGetParams",
    "cuGraphKernelNodeCopyAttributes",
    "cuGraphKernelNodeGetAttribute",
    "cuGraphKernelNodeGetParams",
    "cuGraphKernelNodeSetAttribute",
    "cuGraphMemAllocNodeGetParams",
    "cuGraphMemFreeNodeGetParams",
    "cuGraphMemcpyNodeGetParams",
    "cuGraphMemsetNodeGetParams",
    "cuGraphNodeFindInClone",
    "cuGraphNodeGetDependencies",
    "cuGraphNodeGetDependentNodes",
    "cuGraphNodeGetEnabled",
    "cuGraphNodeGetType",
    "cuGraphNodeSetEnabled",
    "cuGraphReleaseUserObject",
    "cuGraphRemoveDependencies",
    "cuGraphRetainUserObject",
    "cuGraphicsResourceGetMappedMipmappedArray",
    "cuGraphicsResourceGetMappedPointer",
    "cuGraphicsResourceSetMapFlags",
    "cuGraphicsSubResourceGetMappedArray",
    "cuGraphicsUnregisterResource",
    "cuGreenCtxCreate",
    "cuGreenCtxGetDevResource",
    "cuGreenCtxGetId",
    "cuGreenCtxStreamCreate",
    "cuKernelGetAttribute",
    "cuKernelGetFunction",
    "cuKernelGetLibrary",
    "cuKernelGetName",
    "cuKernelGetParamInfo",
    "cuKernelSetAttribute",
    "cuKernelSetCacheConfig",
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
    "cuLogsCurrent",
    "cuLogsDumpToFile",
    "cuLogsDumpToMemory",
    "cuLogsRegisterCallback",
    "cuLogsUnregisterCallback",
    "cuMemAllocHost",
    "cuMemFreeHost",
    "cuMemGetAllocationGranularity",
    "cuMemGetDefaultMemPool",
    "cuMemGetMemPool",
    "cuMemHostAlloc",
    "cuMemHostGetDevicePointer",
    "cuMemHostGetFlags",
    "cuMemHostRegister",
    "cuMemHostUnregister",
    "cuMemPoolGetAccess",
    "cuMemPoolGetAttribute",
    "cuMemSetMemPool",
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
    "cuStreamCopyAttributes",
    "cuStreamCreate",
    "cuStreamCreateWithPriority",
    "cuStreamGetAttribute",
    "cuStreamGetCaptureInfo",
    "cuStreamGetCtx",
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
    "cuSurfObjectDestroy",
    "cuSurfObjectGetResourceDesc",
    "cuSurfRefGetArray",
    "cuSurfRefSetArray",
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
];

/// Beginnings of names that are in no cuda.h this file was made from and pass.
#[rustfmt::skip]
pub static PASSED_PREFIXES: [&str; 21] = [
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
    pub unsafe fn cuMulticastBindMem(entry: Entry, mc_handle: u64, mc_offset: usize, mem_handle: u64, mem_offset: usize, size: usize, flags: u64) -> u32 {
        let Some(address) = driver::address(entry) else { return driver::missing() };
        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, usize, u64, usize, usize, u64) -> u32>(address)(mc_handle, mc_offset, mem_handle, mem_offset, size, flags) }
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
        let Some(address) = driver::address(ids::CU_ARRAY3_DCREATE_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(p_handle, p_allocate_array) }
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
        let Some(address) = driver::address(ids::CU_ARRAY_CREATE_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void) -> u32>(address)(p_handle, p_allocate_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuArrayDestroy(h_array: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_ARRAY_DESTROY) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxAttach(pctx: *mut Handle, flags: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuCtxAttach(ids::CU_CTX_ATTACH, pctx, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxCreate(pctx: *mut Handle, flags: u32, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuCtxCreate(ids::CU_CTX_CREATE, pctx, flags, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxCreate_v2(pctx: *mut Handle, flags: u32, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuCtxCreate_v2(ids::CU_CTX_CREATE_V2, pctx, flags, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxCreate_v3(pctx: *mut Handle, params_array: *mut c_void, num_params: i32, flags: u32, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuCtxCreate_v3(ids::CU_CTX_CREATE_V3, pctx, params_array, num_params, flags, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxCreate_v4(pctx: *mut Handle, ctx_create_params: *mut c_void, flags: u32, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuCtxCreate_v4(ids::CU_CTX_CREATE_V4, pctx, ctx_create_params, flags, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxDestroy(ctx: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuCtxDestroy(ids::CU_CTX_DESTROY, ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxDestroy_v2(ctx: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuCtxDestroy_v2(ids::CU_CTX_DESTROY_V2, ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxDetach(ctx: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuCtxDetach(ids::CU_CTX_DETACH, ctx) }
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
        unsafe { crate::context::cuCtxFromGreenCtx(ids::CU_CTX_FROM_GREEN_CTX, p_context, h_ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxGetLimit(pvalue: *mut usize, limit: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_GET_LIMIT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, u32) -> u32>(address)(pvalue, limit) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxRecordEvent(h_ctx: Handle, h_event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_RECORD_EVENT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_ctx, h_event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuCtxSetLimit(limit: u32, value: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_CTX_SET_LIMIT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, usize) -> u32>(address)(limit, value) }
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
    pub unsafe extern "C" fn cuDeviceGraphMemTrim(device: i32) -> u32 {
        let Some(address) = driver::address(ids::CU_DEVICE_GRAPH_MEM_TRIM) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(i32) -> u32>(address)(device) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxRelease(dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuDevicePrimaryCtxRelease(ids::CU_DEVICE_PRIMARY_CTX_RELEASE, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxRelease_v2(dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuDevicePrimaryCtxRelease_v2(ids::CU_DEVICE_PRIMARY_CTX_RELEASE_V2, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxReset(dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuDevicePrimaryCtxReset(ids::CU_DEVICE_PRIMARY_CTX_RESET, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxReset_v2(dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuDevicePrimaryCtxReset_v2(ids::CU_DEVICE_PRIMARY_CTX_RESET_V2, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(pctx: *mut Handle, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuDevicePrimaryCtxRetain(ids::CU_DEVICE_PRIMARY_CTX_RETAIN, pctx, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventRecord(h_event: Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_EVENT_RECORD) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_event, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventRecordWithFlags(h_event: Handle, h_stream: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_EVENT_RECORD_WITH_FLAGS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32) -> u32>(address)(h_event, h_stream, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventRecordWithFlags_ptsz(h_event: Handle, h_stream: Handle, flags: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_EVENT_RECORD_WITH_FLAGS_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, u32) -> u32>(address)(h_event, h_stream, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuEventRecord_ptsz(h_event: Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_EVENT_RECORD_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_event, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuFlushGPUDirectRDMAWrites(target: u32, scope: u32) -> u32 {
        let Some(address) = driver::address(ids::CU_FLUSH_GPUDIRECT_RDMAWRITES) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u32, u32) -> u32>(address)(target, scope) }
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
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_CHILD_GRAPH_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, Handle) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, child_graph) }
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
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_NODE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, usize, *mut c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphAddNode_v2(ph_graph_node: *mut Handle, h_graph: Handle, dependencies: *const Handle, dependency_data: *const c_void, num_dependencies: usize, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_ADD_NODE_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *const Handle, *const c_void, usize, *mut c_void) -> u32>(address)(ph_graph_node, h_graph, dependencies, dependency_data, num_dependencies, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphBatchMemOpNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_BATCH_MEM_OP_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
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
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_UPDATE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut Handle, *mut u32) -> u32>(address)(h_graph_exec, h_graph, h_error_node_out, update_result_out) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExecUpdate_v2(h_graph_exec: Handle, h_graph: Handle, result_info: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXEC_UPDATE_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle, *mut c_void) -> u32>(address)(h_graph_exec, h_graph, result_info) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExternalSemaphoresSignalNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXTERNAL_SEMAPHORES_SIGNAL_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphExternalSemaphoresWaitNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_EXTERNAL_SEMAPHORES_WAIT_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
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
        let Some(address) = driver::address(ids::CU_GRAPH_INSTANTIATE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *mut Handle, *mut std::ffi::c_char, usize) -> u32>(address)(ph_graph_exec, h_graph, ph_error_node, log_buffer, buffer_size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphInstantiateWithFlags(ph_graph_exec: *mut Handle, h_graph: Handle, flags: u64) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_INSTANTIATE_WITH_FLAGS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, u64) -> u32>(address)(ph_graph_exec, h_graph, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphInstantiateWithParams(ph_graph_exec: *mut Handle, h_graph: Handle, instantiate_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_INSTANTIATE_WITH_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *mut c_void) -> u32>(address)(ph_graph_exec, h_graph, instantiate_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphInstantiateWithParams_ptsz(ph_graph_exec: *mut Handle, h_graph: Handle, instantiate_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_INSTANTIATE_WITH_PARAMS_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *mut c_void) -> u32>(address)(ph_graph_exec, h_graph, instantiate_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphInstantiate_v2(ph_graph_exec: *mut Handle, h_graph: Handle, ph_error_node: *mut Handle, log_buffer: *mut std::ffi::c_char, buffer_size: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_INSTANTIATE_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, Handle, *mut Handle, *mut std::ffi::c_char, usize) -> u32>(address)(ph_graph_exec, h_graph, ph_error_node, log_buffer, buffer_size) }
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
        let Some(address) = driver::address(ids::CU_GRAPH_LAUNCH) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_graph, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphLaunch_ptsz(h_graph_exec: Handle, h_stream: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_LAUNCH_PTSZ) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_graph_exec, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphMemcpyNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_MEMCPY_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphMemsetNodeSetParams(h_node: Handle, node_params: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_MEMSET_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *const c_void) -> u32>(address)(h_node, node_params) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGraphNodeSetParams(h_node: Handle, node_params: *mut c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_GRAPH_NODE_SET_PARAMS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, *mut c_void) -> u32>(address)(h_node, node_params) }
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
    pub unsafe extern "C" fn cuGreenCtxDestroy(h_ctx: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::context::cuGreenCtxDestroy(ids::CU_GREEN_CTX_DESTROY, h_ctx) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuGreenCtxRecordEvent(h_ctx: Handle, h_event: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_GREEN_CTX_RECORD_EVENT) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle, Handle) -> u32>(address)(h_ctx, h_event) }
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
        unsafe { crate::memory::foreign::cuIpcGetEventHandle(ids::CU_IPC_GET_EVENT_HANDLE, p_handle, event) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuIpcGetMemHandle(p_handle: *mut IpcHandle, dptr: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuIpcGetMemHandle(ids::CU_IPC_GET_MEM_HANDLE, p_handle, dptr) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuIpcOpenEventHandle(ph_event: *mut Handle, handle: IpcHandle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuIpcOpenEventHandle(ids::CU_IPC_OPEN_EVENT_HANDLE, ph_event, handle) }
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
    pub unsafe extern "C" fn cuLibraryGetManaged(dptr: *mut u64, bytes: *mut usize, library: Handle, name: *const std::ffi::c_char) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuLibraryGetManaged(ids::CU_LIBRARY_GET_MANAGED, dptr, bytes, library, name) }
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
    pub unsafe extern "C" fn cuMemGetAllocationPropertiesFromHandle(prop: *mut c_void, handle: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemGetAllocationPropertiesFromHandle(ids::CU_MEM_GET_ALLOCATION_PROPERTIES_FROM_HANDLE, prop, handle) }
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
    pub unsafe extern "C" fn cuMemUnmap(ptr: u64, size: usize) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::vmm::cuMemUnmap(ids::CU_MEM_UNMAP, ptr, size) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpy(dst: u64, src: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize) -> u32>(address)(dst, src, byte_count) }
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
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u32, u32) -> u32>(address)(dst_host, src_device, byte_count) }
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
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, usize) -> u32>(address)(dst_host, src_device, byte_count) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMemcpyDtoH_v2_ptds(dst_host: *mut c_void, src_device: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_DTO_H_V2_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void, u64, usize) -> u32>(address)(dst_host, src_device, byte_count) }
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
    pub unsafe extern "C" fn cuMemcpy_ptds(dst: u64, src: u64, byte_count: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_MEMCPY_PTDS) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(u64, u64, usize) -> u32>(address)(dst, src, byte_count) }
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
        let Some(address) = driver::address(ids::CU_MIPMAPPED_ARRAY_CREATE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut Handle, *const c_void, u32) -> u32>(address)(p_handle, p_mipmapped_array_desc, num_mipmap_levels) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMipmappedArrayDestroy(h_mipmapped_array: Handle) -> u32 {
        let Some(address) = driver::address(ids::CU_MIPMAPPED_ARRAY_DESTROY) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(Handle) -> u32>(address)(h_mipmapped_array) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastAddDevice(mc_handle: u64, dev: i32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuMulticastAddDevice(ids::CU_MULTICAST_ADD_DEVICE, mc_handle, dev) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastBindAddr(mc_handle: u64, mc_offset: usize, memptr: u64, size: usize, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuMulticastBindAddr(ids::CU_MULTICAST_BIND_ADDR, mc_handle, mc_offset, memptr, size, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastBindMem(mc_handle: u64, mc_offset: usize, mem_handle: u64, mem_offset: usize, size: usize, flags: u64) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuMulticastBindMem(ids::CU_MULTICAST_BIND_MEM, mc_handle, mc_offset, mem_handle, mem_offset, size, flags) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastCreate(mc_handle: *mut u64, prop: *const c_void) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuMulticastCreate(ids::CU_MULTICAST_CREATE, mc_handle, prop) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuMulticastUnbind(mc_handle: u64, dev: i32, mc_offset: usize, size: usize) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::memory::foreign::cuMulticastUnbind(ids::CU_MULTICAST_UNBIND, mc_handle, dev, mc_offset, size) }
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
        unsafe { crate::capture::cuStreamBeginCapture(ids::CU_STREAM_BEGIN_CAPTURE, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCaptureToGraph(h_stream: Handle, h_graph: Handle, dependencies: *const Handle, dependency_data: *const c_void, num_dependencies: usize, mode: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::capture::cuStreamBeginCaptureToGraph(ids::CU_STREAM_BEGIN_CAPTURE_TO_GRAPH, h_stream, h_graph, dependencies, dependency_data, num_dependencies, mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCaptureToGraph_ptsz(h_stream: Handle, h_graph: Handle, dependencies: *const Handle, dependency_data: *const c_void, num_dependencies: usize, mode: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::capture::cuStreamBeginCaptureToGraph(ids::CU_STREAM_BEGIN_CAPTURE_TO_GRAPH_PTSZ, h_stream, h_graph, dependencies, dependency_data, num_dependencies, mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCapture_ptsz(h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::capture::cuStreamBeginCapture(ids::CU_STREAM_BEGIN_CAPTURE_PTSZ, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCapture_v2(h_stream: Handle, mode: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::capture::cuStreamBeginCapture_v2(ids::CU_STREAM_BEGIN_CAPTURE_V2, h_stream, mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamBeginCapture_v2_ptsz(h_stream: Handle, mode: u32) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::capture::cuStreamBeginCapture_v2(ids::CU_STREAM_BEGIN_CAPTURE_V2_PTSZ, h_stream, mode) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamDestroy(h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::capture::cuStreamDestroy(ids::CU_STREAM_DESTROY, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamDestroy_v2(h_stream: Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::capture::cuStreamDestroy_v2(ids::CU_STREAM_DESTROY_V2, h_stream) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamEndCapture(h_stream: Handle, ph_graph: *mut Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::capture::cuStreamEndCapture(ids::CU_STREAM_END_CAPTURE, h_stream, ph_graph) }
    }
    #[cfg_attr(not(test), unsafe(no_mangle))]
    pub unsafe extern "C" fn cuStreamEndCapture_ptsz(h_stream: Handle, ph_graph: *mut Handle) -> u32 {
        // SAFETY: the caller's promises are those of the entry point.
        unsafe { crate::capture::cuStreamEndCapture(ids::CU_STREAM_END_CAPTURE_PTSZ, h_stream, ph_graph) }
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
    pub unsafe extern "C" fn cuTexObjectCreate(p_tex_object: *mut u64, p_res_desc: *const c_void, p_tex_desc: *const c_void, p_res_view_desc: *const c_void) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_OBJECT_CREATE) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut u64, *const c_void, *const c_void, *const c_void) -> u32>(address)(p_tex_object, p_res_desc, p_tex_desc, p_res_view_desc) }
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
    pub unsafe extern "C" fn cuTexRefSetAddress_v2(byte_offset: *mut usize, h_tex_ref: Handle, dptr: u64, bytes: usize) -> u32 {
        let Some(address) = driver::address(ids::CU_TEX_REF_SET_ADDRESS_V2) else { return driver::missing() };
        let _inside = gate::enter();
        // SAFETY: the address is that of this entry point, whose C signature stands here.
        unsafe { std::mem::transmute::<*const (), unsafe extern "C" fn(*mut usize, Handle, u64, usize) -> u32>(address)(byte_offset, h_tex_ref, dptr, bytes) }
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
