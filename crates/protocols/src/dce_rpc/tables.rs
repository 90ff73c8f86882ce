//! Interfaces and their operations, as Microsoft's open specifications and public lists of RPC
//! interfaces name them.

/// Names of interfaces, by UUID.
pub(super) const ENDPOINTS: &[(u128, &str)] = &[
    (0x0000_0000_0000_0000_c000_0000_0000_0046, "IUnknown"),
    (0x0000_0131_0000_0000_c000_0000_0000_0046, "IRemUnknown"),
    (0x0000_0143_0000_0000_c000_0000_0000_0046, "IRemUnknown2"),
    (0x0000_01a0_0000_0000_c000_0000_0000_0046, "IRemoteSCMActivator"),
    (0x0002_0400_0000_0000_c000_0000_0000_0046, "IDispatch"),
    (0x0002_0401_0000_0000_c000_0000_0000_0046, "ITypeInfo"),
    (0x0002_0402_0000_0000_c000_0000_0000_0046, "ITypeLib"),
    (0x0002_0403_0000_0000_c000_0000_0000_0046, "ITypeComp"),
    (0x0002_0404_0000_0000_c000_0000_0000_0046, "IEnumVARIANT"),
    (0x0002_0411_0000_0000_c000_0000_0000_0046, "ITypeLib2"),
    (0x0002_0412_0000_0000_c000_0000_0000_0046, "ITypeInfo2"),
    (0x0195_4e6b_9254_4e6e_808c_c9e0_5d00_7696, "IVssEnumMgmtObject"),
    (0x0279_47e1_d731_11ce_a357_0000_0000_0001, "IEnumWbemClassObject interface"),
    (0x0346_34fd_ba3f_11d1_856a_00a0_c944_138c, "IManageTelnetSessions"),
    (0x0383_74ff_098b_11d8_9414_5050_5450_3030, "IDataCollector"),
    (0x0383_7502_098b_11d8_9414_5050_5450_3030, "IDataCollectorCollection"),
    (0x0383_7506_098b_11d8_9414_5050_5450_3030, "IPerformanceCounterDataCollector"),
    (0x0383_750b_098b_11d8_9414_5050_5450_3030, "ITraceDataCollector"),
    (0x0383_7510_098b_11d8_9414_5050_5450_3030, "ITraceDataProviderCollection"),
    (0x0383_7512_098b_11d8_9414_5050_5450_3030, "ITraceDataProvider"),
    (0x0383_7514_098b_11d8_9414_5050_5450_3030, "IConfigurationDataCollector"),
    (0x0383_7516_098b_11d8_9414_5050_5450_3030, "IAlertDataCollector"),
    (0x0383_751a_098b_11d8_9414_5050_5450_3030, "IApiTracingDataCollector"),
    (0x0383_7520_098b_11d8_9414_5050_5450_3030, "IDataCollectorSet"),
    (0x0383_7524_098b_11d8_9414_5050_5450_3030, "IDataCollectorSetCollection"),
    (0x0383_7533_098b_11d8_9414_5050_5450_3030, "IValueMapItem"),
    (0x0383_7534_098b_11d8_9414_5050_5450_3030, "IValueMap"),
    (0x0383_753a_098b_11d8_9414_5050_5450_3030, "ISchedule"),
    (0x0383_753d_098b_11d8_9414_5050_5450_3030, "IScheduleCollection"),
    (0x0383_7541_098b_11d8_9414_5050_5450_3030, "IDataManager"),
    (0x0383_7543_098b_11d8_9414_5050_5450_3030, "IFolderAction"),
    (0x0383_7544_098b_11d8_9414_5050_5450_3030, "IFolderActionCollection"),
    (0x081e_7188_c080_4ff3_9238_29f6_6d6c_abfd, "IMessenger"),
    (0x0a74_ef1c_41a4_4e06_83ae_dc74_fb1c_dd53, "idletask"),
    (0x0b1c_2170_5732_4e0e_8cd3_d9b1_6f3b_84d7, "authzr"),
    (0x0b6e_dbfa_4a24_4fc6_8a23_942b_1eca_65d1, "IRPCAsyncNotify"),
    (0x0d72_a7d4_6148_11d1_b4aa_00c0_4fb6_6ea0, "ICertProtect"),
    (0x1088_a980_eae5_11d0_8d9b_00a0_2453_c337, "qm2qm"),
    (0x112b_1dff_d9dc_41f7_869f_d67f_ee7c_b591, "ITpmVirtualSmartCardManager"),
    (0x1189_9a43_2b68_4a76_92e3_a3d6_ad8c_26ce, "TermServNotification"),
    (0x1234_5678_1234_abcd_ef00_0123_4567_89ab, "spoolss"),
    (0x1234_5678_1234_abcd_ef00_0123_4567_cffb, "netlogon"),
    (0x1234_5778_1234_abcd_ef00_0123_4567_89ab, "lsarpc"),
    (0x1234_5778_1234_abcd_ef00_0123_4567_89ac, "samr"),
    (0x1257_b580_ce2f_4109_82d6_a945_9d0b_f6bc, "SessEnvPublicRpc"),
    (0x12b8_1e99_f207_4a4c_85d3_77b4_2f76_fd14, "ISeclogon"),
    (0x1356_98d2_3a37_4d26_99df_e2bb_6ae3_ac61, "IVolumeClient3"),
    (0x1544_f5e0_613c_11d1_93df_00c0_4fd7_bd09, "exchange_rfr"),
    (0x17fd_d703_1827_4e34_79d4_24a5_5c53_bb37, "msgsvc"),
    (0x1a1b_b35f_abb8_451c_a1ae_33d9_8f1b_ef4a, "ITpmVirtualSmartCardManagerStatusCallback"),
    (0x1a91_34dd_7b39_45ba_ad88_44d0_1ca4_7f28, "RemoteRead"),
    (0x1a92_7394_352e_4553_ae3f_7cf4_aafc_a620, "WdsRpcInterface"),
    (0x1c1c_45ee_4395_11d2_b60b_0010_4b70_3efd, "IWbemFetchSmartEnum interface"),
    (0x1ff7_0682_0a51_30e8_076d_740b_e8ce_e98b, "atsvc"),
    (0x2061_0036_fa22_11cf_9823_00a0_c911_e5df, "rasrpc"),
    (0x20d1_5747_6c48_4254_a358_6503_9fd8_c63c, "IServerHealthReport2"),
    (0x214a_0f28_b737_4026_b847_4f9e_37d7_9529, "IVssDifferentialSoftwareSnapshotMgmt"),
    (0x2154_6ae8_4da5_445e_987f_627f_ea39_c5e8, "IWRMConfig"),
    (0x22e5_386d_8b12_4bf0_b0ec_6a1e_a419_e366, "NetEventForwarder"),
    (0x2982_2ab7_f302_11d0_9953_00c0_4fd9_19c1, "IWamAdmin"),
    (0x2982_2ab8_f302_11d0_9953_00c0_4fd9_19c1, "IWamAdmin2"),
    (0x2a3e_b639_d134_422d_90d8_aaa1_b521_6202, "IResourceManager2"),
    (0x2c92_73e0_1dc3_11d3_b364_0010_5a1f_8177, "IWbemRefreshingServices interface"),
    (0x2f59_a331_bf7d_48cb_9ec5_7c09_0d76_e8b8, "lcrpc"),
    (0x2f5f_3220_c126_1076_b549_074d_0786_19da, "nddeapi"),
    (0x2f5f_6520_ca46_1067_b319_00dd_0106_62da, "tapsrv"),
    (0x2f5f_6521_ca47_1068_b319_00dd_0106_62db, "remotesp"),
    (0x300f_3532_38cc_11d0_a3f0_0020_af6b_0add, "trkwks"),
    (0x338c_d001_2244_31f1_aaaa_9000_3800_1003, "winreg"),
    (0x342c_fd40_3c6c_11ce_a893_0800_2b2e_9c6d, "llsrpc"),
    (0x367a_bb81_9844_35f1_ad32_98f0_3800_1003, "svcctl"),
    (0x378e_52b0_c0a9_11cf_822d_00aa_0051_e40f, "sasec"),
    (0x3919_286a_b10c_11d0_9ba8_00c0_4fd9_2ef5, "dssetup"),
    (0x3a41_0f21_553f_11d1_8e5e_00a0_c92c_9d5d, "IDMRemoteServer"),
    (0x3bbe_d8d9_2c9a_4b21_8936_acb2_f995_be6c, "INtmsObjectManagement3"),
    (0x3c47_28c5_f0ab_448b_bda1_6ce0_1eb0_a6d5, "RpcSrvDHCPC"),
    (0x3c47_28c5_f0ab_448b_bda1_6ce0_1eb0_a6d6, "dhcpcsvc6"),
    (0x3c74_5a97_f375_4150_be17_5950_f694_c699, "ITpmVirtualSmartCardManager3"),
    (0x3d26_7954_eeb7_11d1_b94e_00c0_4fa3_080d, "HydraLsPipe"),
    (0x3dde_7c30_165d_11d1_ab8f_0080_5f14_db40, "BackupKey"),
    (0x3faf_4738_3a21_4307_b46c_fdda_9bb8_c0d5, "AudioSrv"),
    (0x4120_8ee0_e970_11d1_9b9e_00e0_2c06_4c39, "qmmgmt"),
    (0x423e_c01e_2e35_11d2_b604_0010_4b70_3efd, "IWbemWCOSmartEnum interface"),
    (0x44ac_a674_e8fc_11d0_a07c_00c0_4fb6_8820, "IWbemContext interface"),
    (0x44ac_a675_e8fc_11d0_a07c_00c0_4fb6_8820, "IWbemCallResult interface"),
    (0x44e2_65dd_7daf_42cd_8560_3cdb_6e7a_2729, "TsProxyRpcInterface"),
    (0x4590_f812_1d3a_11d0_891f_00aa_004b_2e24, "IWbemClassObject unmarshaler"),
    (0x45f5_2c28_7f9f_101a_b52b_0800_2b2e_fabe, "winspipe"),
    (0x481e_06cf_ab04_4498_8ffe_124a_0a34_296d, "IWRMCalendar"),
    (0x4848_09d6_4239_471b_b5bc_61df_8c23_ac48, "TermSrvSession"),
    (0x497d_95a6_2d27_4bf5_9bbd_a604_6957_133c, "RCMListener"),
    (0x4b11_2204_0e19_11d3_b42b_0000_f81f_eb9f, "ssdpsrv"),
    (0x4b32_4fc8_1670_01d3_1278_5a47_bf6e_e188, "srvsvc"),
    (0x4bb8_ab1d_9ef9_4100_8eb6_dd4b_4e41_8b72, "IADProxy"),
    (0x4bda_fc52_fe6a_11d2_93f8_0010_5a11_164a, "IVolumeClient2"),
    (0x4d9f_4ab8_7d1c_11cf_861e_0020_af6e_7c57, "IActivation"),
    (0x4da1_c422_943d_11d1_acae_00c0_4fc2_aa3f, "trksvr"),
    (0x4e93_4f30_341a_11d1_8fb1_00a0_24cb_6019, "INtmsLibraryControl1"),
    (0x4f7c_a01c_a9e5_45b6_b142_2332_a133_9c1d, "IWRMAccounting"),
    (0x4fc7_42e0_4a10_11cf_8273_00aa_004a_e673, "netdfs"),
    (0x50ab_c2a4_574d_40b3_9d66_ee4f_d5fb_a076, "dnsserver"),
    (0x51c8_2175_844e_4750_b0d8_ec25_5555_bc06, "KMS"),
    (0x5261_574a_4572_206e_b268_6b19_9213_b4e4, "AsyncEMSMDB"),
    (0x53b4_6b02_c73b_4a3e_8dee_b16b_8067_2fc0, "TSVIPPublic"),
    (0x5422_fd3a_d4b8_4cef_a12e_e87d_4ca2_2e90, "ICertRequestD2"),
    (0x5767_4cd0_5200_11ce_a897_0800_2b2e_9c6d, "lls_license"),
    (0x5960_2eb6_57b0_4fd8_aa4b_ebf0_6971_fe15, "IWRMPolicy"),
    (0x5a7b_91f8_ff00_11d0_a9b2_00c0_4fb6_e6fc, "msgsvcsend"),
    (0x5b82_1720_f63b_11d0_aad2_00c0_4fc3_24db, "dhcpsrv2"),
    (0x5ca4_a760_ebb1_11cf_8611_00a0_2454_20ed, "winstation_rpc"),
    (0x5ff9_bdf6_bd91_4d8b_a614_d631_7acc_8dd8, "IRemoteSstpCertCheck"),
    (0x6099_fc12_3eff_11d0_abd0_00c0_4fd9_1a4e, "faxclient"),
    (0x6139_d8a4_e508_4ebb_bac7_d7f2_7514_5897, "IRemoteIPV6Config"),
    (0x6619_a740_8154_43be_a186_0319_578e_02db, "IRemoteDispatch"),
    (0x66a2_db1b_d706_11d0_a37b_00c0_4fc9_da04, "IRemoteNetworkConfig"),
    (0x66a2_db20_d706_11d0_a37b_00c0_4fc9_da04, "IRemoteRouterRestart"),
    (0x66a2_db21_d706_11d0_a37b_00c0_4fc9_da04, "IRemoteSetDnsConfig"),
    (0x66a2_db22_d706_11d0_a37b_00c0_4fc9_da04, "IRemoteICFICSConfig"),
    (0x674b_6698_ee92_11d0_ad71_00c0_4fd8_fdff, "IWbemContext unmarshaler"),
    (0x67e0_8fc2_2984_4b62_b92e_fc1a_ae64_bbbb, "IRemoteStringIdConfig"),
    (0x68b5_8241_c259_4f03_a2e5_a265_1dcb_c930, "IKeySvc2"),
    (0x69ab_7050_3059_11d1_8faf_00a0_24cb_6019, "INtmsObjectInfo1"),
    (0x6b5b_dd1e_528c_422c_af8c_a407_9be4_fe48, "RemoteFW"),
    (0x6bff_d098_a112_3610_9833_0128_9202_0162, "browser"),
    (0x6bff_d098_a112_3610_9833_46c3_f874_532d, "dhcpsrv"),
    (0x6bff_d098_a112_3610_9833_46c3_f87e_345a, "wkssvc"),
    (0x708c_ca10_9569_11d1_b2a5_0060_977d_8118, "dscomm2"),
    (0x70b5_1430_b6ca_11d0_b9b9_00a0_c922_e750, "IMSAdminBaseW"),
    (0x76d1_2b80_3467_11d3_91ff_0090_272f_9ea3, "qmcomm2"),
    (0x76f0_3f96_cdfd_44fc_a22c_6495_0a00_1209, "IRemoteWinspool"),
    (0x77df_7a80_f298_11d0_8358_00a0_24c4_80a8, "dscomm"),
    (0x784b_693d_95f3_420b_8126_365c_0986_59f2, "IOCSPAdminD"),
    (0x7c44_d7d4_31d5_424c_bd5e_2b3e_1f32_3d22, "dsaop"),
    (0x7c4e_1804_e342_483d_a43e_a850_cfcc_8d18, "IIISApplicationAdmin"),
    (0x7c85_7801_7381_11cf_884d_00aa_004b_2e24, "IWbemObjectSink interface"),
    (0x7d07_f313_a53f_459a_bb12_012c_15b1_846e, "IRobustNtmsMediaServices1"),
    (0x7fe0_d935_dda6_443f_85d0_1cfb_58fe_41dd, "ICertAdminD2"),
    (0x8111_09bf_a4e1_11d1_ab54_00a0_c91e_9b45, "winsi2"),
    (0x8165_b19e_8d3a_4d0b_80c8_97de_310d_b583, "IServicedComponentInfo"),
    (0x8227_3fdc_e32a_18c3_3f78_8279_29dc_23ea, "eventlog"),
    (0x8298_d101_f992_43b7_8eca_5052_d885_b995, "IMSAdminBase2W"),
    (0x82ad_4280_036b_11cf_972c_00aa_0068_87b0, "inetinfo"),
    (0x833e_4100_aff7_4ac3_aac2_9f24_c145_7bce, "IPCHCollection"),
    (0x833e_41aa_aff7_4ac3_aac2_9f24_c145_7bce, "ISAFSession"),
    (0x833e_4200_aff7_4ac3_aac2_9f24_c145_7bce, "IPCHService"),
    (0x83da_7c00_e84f_11d2_9807_00c0_4f8e_c850, "sfcapi"),
    (0x86d3_5949_83c9_4044_b424_db36_3231_fd0c, "ITaskSchedulerService"),
    (0x879c_8bbe_41b0_11d1_be11_00c0_4fb6_bf70, "IClientSink"),
    (0x8814_3fd0_c28d_4b2b_8fef_8d88_2f6a_9390, "TermServEnumeration"),
    (0x894d_e0c0_0d55_11d3_a322_00c0_4fa3_21a1, "InitShutdown"),
    (0x895a_2c86_270d_489d_a6c0_dc2a_9b35_280e, "INtmsObjectManagement2"),
    (0x897e_2e5f_93f3_4376_9c9c_fd22_7749_5c27, "FrsTransport"),
    (0x8d0f_fe72_d252_11d0_bf8f_00c0_4fd9_126b, "IKeySvc"),
    (0x8d9f_4e40_a03d_11ce_8f69_0800_3e30_051b, "pnp"),
    (0x8da0_3f40_3419_11d1_8fb1_00a0_24cb_6019, "INtmsSession1"),
    (0x8f09_f000_b7ed_11ce_bbd2_0000_1a18_1cad, "dimsvc"),
    (0x8fb6_d884_2388_11d0_8c35_00c0_4fda_2795, "W32Time"),
    (0x906b_0ce0_c70b_1067_b317_00dd_0106_62da, "IXnRemote"),
    (0x91ae_6020_9e3c_11cf_8d7c_00aa_00c0_91be, "ICertPassage"),
    (0x9439_91a5_b3fe_41fa_9696_7f7b_656e_e34b, "IWRMMachineGroup"),
    (0x9556_dc99_828c_11cf_a37e_00aa_0032_40c7, "IWbemServices"),
    (0x99fc_fec4_5260_101b_bbcb_00aa_0021_347a, "IObjectExporter"),
    (0x9a65_3086_174f_11d2_b5f9_0010_4b70_3efd, "IWbemClassObject interface"),
    (0xa359_dec5_e813_4834_8a2a_ba7f_1d77_7d76, "IWbemBackupRestoreEx interface"),
    (0xa4f1_db00_ca47_1067_b31f_00dd_0106_62da, "exchange_mapi"),
    (0xa8e0_653c_2744_4389_a61d_7373_df8b_2292, "FileServerVssAgent"),
    (0xae1c_7110_2f60_11d3_8a39_00c0_4f72_d8e3, "IVssEnumObject"),
    (0xae33_069b_a2a8_46ee_a235_ddfd_339b_e281, "IRPCRemoteObject"),
    (0xafa8_bd80_7d8a_11c9_bef4_0800_2b10_2989, "mgmt"),
    (0xafc0_7e2e_311c_4435_808c_c483_ffee_c7c9, "lsacap"),
    (0xb057_dc50_3059_11d1_8faf_00a0_24cb_6019, "INtmsObjectManagement1"),
    (0xb978_5960_524f_11df_8b6d_83dc_ded7_2085, "ISDKey"),
    (0xb97d_b8b2_4c63_11cf_bff6_0800_2be2_3f2f, "clusapi"),
    (0xbb39_332c_bfee_4380_ad8a_badc_8aff_5bb6, "INtmsNotifySink"),
    (0xbc68_1469_9dd9_4bf4_9b3d_709f_69ef_e431, "IWRMResourceGroup"),
    (0xbd0c_73bc_805b_4043_9c30_9a28_d64d_d7d2, "IIISCertObj"),
    (0xbde9_5fdf_eee0_45de_9e12_e5a6_1cd0_d4fe, "RCMPublic"),
    (0xc386_ca3e_9061_4a72_821e_498d_83be_188f, "AudioRpc"),
    (0xc3fc_c19e_a970_11d2_8b5a_00a0_c9b7_c9c4, "IManagedObject"),
    (0xc49e_32c6_bc8b_11d2_85d4_0010_5a1f_8304, "IWbemBackupRestoreEx interface"),
    (0xc49e_32c7_bc8b_11d2_85d4_0010_5a1f_8304, "IWbemBackupRestore interface"),
    (0xc4b0_c7d9_abe0_4733_a1e1_9fde_df26_0c7a, "IADProxy2"),
    (0xc5ce_bee2_9df5_4cdd_a08c_c247_1bc1_44b4, "IResourceManager"),
    (0xc681_d488_d850_11d0_8c52_00c0_4fd9_0f7e, "efsrpc2"),
    (0xc8cb_7687_e6d3_11d2_a958_00c0_4f68_2e16, "DAV RPC SERVICE"),
    (0xccd8_c074_d0e5_4a40_92b4_d074_faa6_ba28, "Witness"),
    (0xd02e_4be0_3419_11d1_8fb1_00a0_24cb_6019, "INtmsMediaServices1"),
    (0xd049_b186_814f_11d1_9a3c_00c0_4fc9_b232, "NtFrsApi"),
    (0xd2d7_9df5_3400_11d0_b40b_00aa_005f_f586, "IVolumeClient"),
    (0xd2d7_9df7_3400_11d0_b40b_00aa_005f_f586, "IDMNotify"),
    (0xd3fb_b514_0e3b_11cb_8fad_0800_2b1d_29c3, "NsiC"),
    (0xd478_1cd6_e5d3_44df_ad94_930e_fe48_a887, "IWbemLoginClientID"),
    (0xd61a_27c6_8f53_11d0_bfa0_00a0_2415_1983, "CNtmsSvr"),
    (0xd6d7_0ef0_0e3b_11cb_acc3_0800_2b1d_29c3, "NsiS"),
    (0xd6d7_0ef0_0e3b_11cb_acc3_0800_2b1d_29c4, "NsiM"),
    (0xd95a_fe70_a6d5_4259_822e_2c84_da1d_db0d, "WindowsShutdown"),
    (0xd99e_6e70_fc88_11d0_b498_00a0_c903_12f3, "ICertRequestD"),
    (0xd99e_6e71_fc88_11d0_b498_00a0_c903_12f3, "ICertAdminD"),
    (0xda5a_86c5_12c2_4943_ab30_7f74_a813_d853, "PerflibV2"),
    (0xdb90_832f_6910_4d46_9f5e_9fd6_bfa7_3903, "INtmsLibraryControl2"),
    (0xdc12_a681_737f_11cf_884d_00aa_004b_2e24, "IWbemClassObject interface"),
    (0xdeb0_1010_3a37_4d26_99df_e2bb_6ae3_ac61, "IVolumeClient4"),
    (0xdf19_41c5_fe89_4e79_bf10_4636_57ac_f44d, "efsrpc"),
    (0xe1af_8308_5d1f_11c9_91a4_0800_2b14_a0fa, "epmapper"),
    (0xe33c_0cc4_0482_101a_bc0c_0260_8c6b_a218, "locator"),
    (0xe351_4235_4b06_11d1_ab04_00c0_4fc2_dcd2, "drsuapi"),
    (0xe3d0_d746_d2af_40fd_8a7a_0d70_78bb_7092, "BitsPeerAuth"),
    (0xe65e_8028_83e8_491b_9af7_aaf6_bd51_a0ce, "IServerHealthReport"),
    (0xe8fb_8620_588f_11d2_9d61_00c0_4f79_c5fe, "IIisServiceControl"),
    (0xea0a_3165_4834_11d2_a6f8_00c0_4fa3_46cc, "fax"),
    (0xf120_a684_b926_447f_9df4_c966_cb78_5648, "IRASrv"),
    (0xf1e9_c5b2_f59b_11d2_b362_0010_5a1f_8177, "IWbemRemoteRefresher interface"),
    (0xf309_ad18_d86a_11d0_a075_00c0_4fb6_8820, "IWbemLevel1Login"),
    (0xf319_31a9_832d_481c_9503_887a_0e6a_79f0, "IWRMProtocol"),
    (0xf50a_ac00_c7f3_428e_a022_a6b7_1bfb_9d43, "ICatDBSvc"),
    (0xf5cc_59b4_4264_101a_8c59_0800_2b2f_8426, "FrsRpc"),
    (0xf5cc_5a18_4264_101a_8c59_0800_2b2f_8426, "nspi"),
    (0xf612_954d_3b0b_4c56_9563_227b_7be6_24b4, "IMSAdminBase3W"),
    (0xf6be_aff7_1e19_4fbb_9f8f_b89e_2018_337c, "IEventService"),
    (0xfa7d_f749_66e7_4986_a27f_e2f0_4ae5_3772, "IVssSnapshotMgmt"),
    (0xfc91_0418_55ca_45ef_b264_83d4_ce7d_30e0, "IWRMRemoteSessionMgmt"),
    (0xfdb3_a030_065f_11d1_bb9b_00a0_24ea_5525, "qmcomm"),
    (0xfdf8_a2b9_02de_47f4_bc26_aa85_ab5e_5267, "ITpmVirtualSmartCardManager2"),
];

/// Names of the operations of interfaces, by UUID, in the order of their numbers; `-` for a number
/// without a name.
pub(super) const OPERATIONS: &[(u128, &str)] = &[
    (
        0x0000_0000_0000_0000_c000_0000_0000_0046,
        "Opnum0NotUsedOnWire Opnum1NotUsedOnWire Opnum2NotUsedOnWire",
    ),
    (0x0000_0131_0000_0000_c000_0000_0000_0046, "- - - RemQueryInterface RemAddRef RemRelease"),
    (
        0x0000_0143_0000_0000_c000_0000_0000_0046,
        "QueryInterface AddRef Release RemQueryInterface RemAddRef RemRelease \
         RemQueryInterface2",
    ),
    (
        0x0000_01a0_0000_0000_c000_0000_0000_0046,
        "QueryInterfaceIRemoteSCMActivator AddRefIRemoteISCMActivator \
         ReleaseIRemoteISCMActivator RemoteGetClassObject RemoteCreateInstance",
    ),
    (
        0x0002_0400_0000_0000_c000_0000_0000_0046,
        "- - - GetTypeInfoCount GetTypeInfo GetIDsOfNames Invoke",
    ),
    (
        0x0002_0401_0000_0000_c000_0000_0000_0046,
        "- - - GetTypeAttr GetTypeComp GetFuncDesc GetVarDesc GetNames GetRefTypeOfImplType \
         GetImplTypeFlags - - GetDocumentation GetDllEntry GetRefTypeInfo - CreateInstance \
         GetMops GetContainingTypeLib",
    ),
    (0x0195_4e6b_9254_4e6e_808c_c9e0_5d00_7696, "- - - Next Skip Reset Clone"),
    (0x0279_47e1_d731_11ce_a357_0000_0000_0001, "- - - Reset Next NextAsync Clone Skip"),
    (
        0x0346_34fd_ba3f_11d1_856a_00a0_c944_138c,
        "- - - - - - - GetTelnetSessions TerminateSession SendMsgToASession",
    ),
    (
        0x0a74_ef1c_41a4_4e06_83ae_dc74_fb1c_dd53,
        "ItSrvRegisterIdleTask ItSrvUnregisterIdleTask ItSrvProcessIdleTasks \
         ItSrvSetDetectionParameters",
    ),
    (
        0x0b1c_2170_5732_4e0e_8cd3_d9b1_6f3b_84d7,
        "AuthzrFreeContext AuthzrInitializeContextFromSid AuthrzInitializeCompoundContext \
         AuthrzAccessCheck AuthrzGetInformationFromContext AuthrzModifyClaims \
         AuthrzModifySids",
    ),
    (0x0d72_a7d4_6148_11d1_b4aa_00c0_4fb6_6ea0, "SSCertProtectFunction"),
    (
        0x112b_1dff_d9dc_41f7_869f_d67f_ee7c_b591,
        "- - - CreateVirtualSmartCard DestroyVirtualSmartCard",
    ),
    (
        0x1189_9a43_2b68_4a76_92e3_a3d6_ad8c_26ce,
        "RpcWaitForSessionState RpcRegisterAsyncNotification RpcWaitAsyncNotification \
         RpcUnRegisterAsyncNotification",
    ),
    (
        0x1234_5678_1234_abcd_ef00_0123_4567_89ab,
        "RpcEnumPrinters RpcOpenPrinter RpcSetJob RpcGetJob RpcEnumJobs RpcAddPrinter \
         RpcDeletePrinter RpcSetPrinter RpcGetPrinter RpcAddPrinterDriver \
         RpcEnumPrinterDrivers RpcGetPrinterDriver RpcGetPrinterDriverDirectory \
         RpcDeletePrinterDriver RpcAddPrintProcessor RpcEnumPrintProcessors \
         RpcGetPrintProcessorDirectory RpcStartDocPrinter RpcStartPagePrinter \
         RpcWritePrinter RpcEndPagePrinter RpcAbortPrinter RpcReadPrinter RpcEndDocPrinter \
         RpcAddJob RpcScheduleJob RpcGetPrinterData RpcSetPrinterData \
         RpcWaitForPrinterChange RpcClosePrinter RpcAddForm RpcDeleteForm RpcGetForm \
         RpcSetForm RpcEnumForms RpcEnumPorts RpcEnumMonitors RpcAddPort RpcConfigurePort \
         RpcDeletePort RpcCreatePrinterIC RpcPlayGdiScriptOnPrinterIC RpcDeletePrinterIC \
         RpcAddPrinterConnection RpcDeletePrinterConnection RpcPrinterMessageBox \
         RpcAddMonitor RpcDeleteMonitor RpcDeletePrintProcessor RpcAddPrintProvidor \
         RpcDeletePrintProvidor RpcEnumPrintProcessorDatatypes RpcResetPrinter \
         RpcGetPrinterDriver2 RpcClientFindFirstPrinterChangeNotification \
         RpcFindNextPrinterChangeNotification RpcFindClosePrinterChangeNotification \
         RpcRouterFindFirstPrinterChangeNotificationOld RpcReplyOpenPrinter \
         RpcRouterReplyPrinter RpcReplyClosePrinter RpcAddPortEx \
         RpcRemoteFindFirstPrinterChangeNotification RpcSpoolerInit RpcResetPrinterEx \
         RpcRemoteFindFirstPrinterChangeNotificationEx RpcRouterReplyPrinterEx \
         RpcRouterRefreshPrinterChangeNotification RpcSetAllocFailCount RpcSplOpenPrinter \
         RpcAddPrinterEx RpcSetPort RpcEnumPrinterData RpcDeletePrinterData \
         RpcClusterSplOpen RpcClusterSplClose RpcClusterSplIsAlive RpcSetPrinterDataEx \
         RpcGetPrinterDataEx RpcEnumPrinterDataEx RpcEnumPrinterKey RpcDeletePrinterDataEx \
         RpcDeletePrinterKey RpcSeekPrinter RpcDeletePrinterDriverEx \
         RpcAddPerMachineConnection RpcDeletePerMachineConnection \
         RpcEnumPerMachineConnections RpcXcvData RpcAddPrinterDriverEx RpcSplOpenPrinter \
         RpcGetSpoolFileInfo RpcCommitSpoolData RpcCloseSpoolFileHandle RpcFlushPrinter \
         RpcSendRecvBidiData RpcAddDriverCatalog RpcAddPrinterConnection2 \
         RpcDeletePrinterConnection2 RpcInstallPrinterDriverFromPackage \
         RpcUploadPrinterDriverPackage RpcGetCorePrinterDrivers \
         RpcCorePrinterDriverInstalled RpcGetPrinterDriverPackagePath \
         RpcReportJobProcessingProgress - - - - - RpcGetJobNamedPropertyValue \
         RpcSetJobNamedProperty RpcDeleteJobNamedProperty RpcEnumJobNamedProperties - - \
         RpcLogJobInfoForBranchOffice",
    ),
    (
        0x1234_5678_1234_abcd_ef00_0123_4567_cffb,
        "NetrLogonUasLogon NetrLogonUasLogoff NetrLogonSamLogon NetrLogonSamLogoff \
         NetrServerReqChallenge NetrServerAuthenticate NetrServerPasswordSet \
         NetrDatabaseDeltas NetrDatabaseSync NetrAccountDeltas NetrAccountSync \
         NetrGetDCName NetrLogonControl NetrGetAnyDCName NetrLogonControl2 \
         NetrServerAuthenticate2 NetrDatabaseSync2 NetrDatabaseRedo NetrLogonControl2Ex \
         NetrEnumerateTrustedDomains DsrGetDcName NetrLogonGetCapabilities \
         NetrLogonSetServiceBits NetrLogonGetTrustRid NetrLogonComputeServerDigest \
         NetrLogonComputeClientDigest NetrServerAuthenticate3 DsrGetDcNameEx DsrGetSiteName \
         NetrLogonGetDomainInfo NetrServerPasswordSet2 NetrServerPasswordGet \
         NetrLogonSendToSam DsrAddressToSiteNamesW DsrGetDcNameEx2 \
         NetrLogonGetTimeServiceParentDomain NetrEnumerateTrustedDomainsEx \
         DsrAddressToSiteNamesExW DsrGetDcSiteCoverageW NetrLogonSamLogonEx \
         DsrEnumerateDomainTrusts DsrDeregisterDnsHostRecords NetrServerTrustPasswordsGet \
         DsrGetForestTrustInformation NetrGetForestTrustInformation \
         NetrLogonSamLogonWithFlags NetrServerGetTrustInfo unused \
         DsrUpdateReadOnlyServerDnsRecords NetrChainSetClientAttributes",
    ),
    (
        0x1234_5778_1234_abcd_ef00_0123_4567_89ab,
        "LsarClose LsarDelete LsarEnumeratePrivileges LsarQuerySecurityObject \
         LsarSetSecurityObject LsarChangePassword LsarOpenPolicy LsarQueryInformationPolicy \
         LsarSetInformationPolicy LsarClearAuditLog LsarCreateAccount LsarEnumerateAccounts \
         LsarCreateTrustedDomain LsarEnumerateTrustedDomains LsarLookupNames LsarLookupSids \
         LsarCreateSecret LsarOpenAccount LsarEnumeratePrivilegesAccount \
         LsarAddPrivilegesToAccount LsarRemovePrivilegesFromAccount LsarGetQuotasForAccount \
         LsarSetQuotasForAccount LsarGetSystemAccessAccount LsarSetSystemAccessAccount \
         LsarOpenTrustedDomain LsarQueryInfoTrustedDomain LsarSetInformationTrustedDomain \
         LsarOpenSecret LsarSetSecret LsarQuerySecret LsarLookupPrivilegeValue \
         LsarLookupPrivilegeName LsarLookupPrivilegeDisplayName LsarDeleteObject \
         LsarEnumerateAccountsWithUserRight LsarEnumerateAccountRights LsarAddAccountRights \
         LsarRemoveAccountRights LsarQueryTrustedDomainInfo LsarSetTrustedDomainInfo \
         LsarDeleteTrustedDomain LsarStorePrivateData LsarRetrievePrivateData \
         LsarOpenPolicy2 LsarGetUserName LsarQueryInformationPolicy2 \
         LsarSetInformationPolicy2 LsarQueryTrustedDomainInfoByName \
         LsarSetTrustedDomainInfoByName LsarEnumerateTrustedDomainsEx \
         LsarCreateTrustedDomainEx LsarCloseTrustedDomainEx \
         LsarQueryDomainInformationPolicy LsarSetDomainInformationPolicy \
         LsarOpenTrustedDomainByName LsarTestCall LsarLookupSids2 LsarLookupNames2 \
         LsarCreateTrustedDomainEx2 CredrWrite CredrRead CredrEnumerate \
         CredrWriteDomainCredentials CredrReadDomainCredentials CredrDelete \
         CredrGetTargetInfo CredrProfileLoaded LsarLookupNames3 CredrGetSessionTypes \
         LsarRegisterAuditEvent LsarGenAuditEvent LsarUnregisterAuditEvent \
         LsarQueryForestTrustInformation LsarSetForestTrustInformation CredrRename \
         LsarLookupSids3 LsarLookupNames4 LsarOpenPolicySce \
         LsarAdtRegisterSecurityEventSource LsarAdtUnregisterSecurityEventSource \
         LsarAdtReportSecurityEvent CredrFindBestCredential LsarSetAuditPolicy \
         LsarQueryAuditPolicy LsarEnumerateAuditPolicy LsarEnumerateAuditCategories \
         LsarEnumerateAuditSubCategories LsarLookupAuditCategoryName \
         LsarLookupAuditSubCategoryName LsarSetAuditSecurity LsarQueryAuditSecurity \
         CredReadByTokenHandle CredrRestoreCredentials CredrBackupCredentials - - - - - - - \
         - - - - - - - - - - - - - - - - - - - - - - - - - - - LsarCreateTrustedDomainEx3 \
         LsarOpenPolicy3 - - LsarSetForestTrustInformation2",
    ),
    (
        0x1234_5778_1234_abcd_ef00_0123_4567_89ac,
        "SamrConnect SamrCloseHandle SamrSetSecurityObject SamrQuerySecurityObject \
         SamrShutdownSamServer SamrLookupDomainInSamServer SamrEnumerateDomainsInSamServer \
         SamrOpenDomain SamrQueryInformationDomain SamrSetInformationDomain \
         SamrCreateGroupInDomain SamrEnumerateGroupsInDomain SamrCreateUserInDomain \
         SamrEnumerateUsersInDomain SamrCreateAliasInDomain SamrEnumerateAliasesInDomain \
         SamrGetAliasMembership SamrLookupNamesInDomain SamrLookupIdsInDomain SamrOpenGroup \
         SamrQueryInformationGroup SamrSetInformationGroup SamrAddMemberToGroup \
         SamrDeleteGroup SamrRemoveMemberFromGroup SamrGetMembersInGroup \
         SamrSetMemberAttributesOfGroup SamrOpenAlias SamrQueryInformationAlias \
         SamrSetInformationAlias SamrDeleteAlias SamrAddMemberToAlias \
         SamrRemoveMemberFromAlias SamrGetMembersInAlias SamrOpenUser SamrDeleteUser \
         SamrQueryInformationUser SamrSetInformationUser SamrChangePasswordUser \
         SamrGetGroupsForUser SamrQueryDisplayInformation SamrGetDisplayEnumerationIndex \
         SamrTestPrivateFunctionsDomain SamrTestPrivateFunctionsUser \
         SamrGetUserDomainPasswordInformation SamrRemoveMemberFromForeignDomain \
         SamrQueryInformationDomain2 SamrQueryInformationUser2 SamrQueryDisplayInformation2 \
         SamrGetDisplayEnumerationIndex2 SamrCreateUser2InDomain \
         SamrQueryDisplayInformation3 SamrAddMultipleMembersToAlias \
         SamrRemoveMultipleMembersFromAlias SamrOemChangePasswordUser2 \
         SamrUnicodeChangePasswordUser2 SamrGetDomainPasswordInformation SamrConnect2 \
         SamrSetInformationUser2 SamrSetBootKeyInformation SamrGetBootKeyInformation \
         SamrConnect3 SamrConnect4 SamrUnicodeChangePasswordUser3 SamrConnect5 SamrRidToSid \
         SamrSetDSRMPassword SamrValidatePassword SamrQueryLocalizableAccountsInDomain \
         SamrPerformGenericOperation - - - SamrUnicodeChangePasswordUser4",
    ),
    (0x1257_b580_ce2f_4109_82d6_a945_9d0b_f6bc, "RpcShadow2"),
    (
        0x12b8_1e99_f207_4a4c_85d3_77b4_2f76_fd14,
        "SeclCreateProcessWithLogonW SeclCreateProcessWithLogonExW",
    ),
    (
        0x1356_98d2_3a37_4d26_99df_e2bb_6ae3_ac61,
        "- - - EnumDisksEx EnumDiskRegionsEx CreatePartition CreatePartitionAssignAndFormat \
         CreatePartitionAssignandFormatEx DeletePartition InitializeDiskStyle \
         MarkActivePartition Eject Opnum12NotUsedOnWire FTEnumVolumes \
         FTEnumLogicalDiskMembers FTDeleteVolume FTBreakMirror FTResyncMirror \
         FTRegenerateParityStripe FTReplaceMirrorPartition FTReplaceParityStripePartition \
         EnumDriveLetters AssignDriveLetter FreeDriveLetter EnumLocalFileSystems \
         GetInstalledFileSystems Format EnumVolumes EnumVolumeMembers CreateVolume \
         CreateVolumeAssignAndFormat CreateVolumeAssignAndFormatEx GetVolumeMountName \
         GrowVolume DeleteVolume CreatePartitionsForVolume DeletePartitionsForVolume \
         GetMaxAdjustedFreeSpace AddMirror RemoveMirror SplitMirror InitializeDiskEx \
         UninitializeDisk ReConnectDisk ImportDiskGroup DiskMergeQuery DiskMerge \
         ReAttachDisk ReplaceRaid5Column RestartVolume GetEncapsulateDiskInfoEx \
         EncapsulateDiskEx QueryChangePartitionNumbers \
         DeletePartitionNumberInfoFromRegistry SetDontShow GetDontShow Opnum56NotUsedOnWire \
         Opnum57NotUsedOnWire Opnum58NotUsedOnWire Opnum59NotUsedOnWire \
         Opnum60NotUsedOnWire Opnum61NotUsedOnWire Opnum62NotUsedOnWire \
         Opnum63NotUsedOnWire EnumTasks GetTaskDetail AbortTask HrGetErrorData Initialize \
         Uninitialize Refresh RescanDisks RefreshFileSys SecureSystemPartition \
         ShutDownSystem EnumAccessPath EnumAccessPathForVolume AddAccessPath \
         DeleteAccessPath",
    ),
    (
        0x17fd_d703_1827_4e34_79d4_24a5_5c53_bb37,
        "NetrMessageNameAdd NetrMessageNameEnum NetrMessageNameGetInfo NetrMessageNameDel",
    ),
    (0x1a1b_b35f_abb8_451c_a1ae_33d9_8f1b_ef4a, "- - - ReportProgress ReportError"),
    (0x1a92_7394_352e_4553_ae3f_7cf4_aafc_a620, "WdsRpcMessage"),
    (0x1ff7_0682_0a51_30e8_076d_740b_e8ce_e98b, "NetrJobAdd NetrJobDel NetrJobEnum NetrJobGetInfo"),
    (
        0x20d1_5747_6c48_4254_a358_6503_9fd8_c63c,
        "- - - - - - - - - GetReport - - - - - - GetCompressedReport",
    ),
    (
        0x214a_0f28_b737_4026_b847_4f9e_37d7_9529,
        "- - - AddDiffArea ChangeDiffAreaMaximizeSize QueryVolumesSupportedForDiffAreas \
         QueryDiffAreasForVolume QueryDiffAreaOnVolume Opnum08NotUsedOnWire",
    ),
    (
        0x2154_6ae8_4da5_445e_987f_627f_ea39_c5e8,
        "- - - - - - - GetConfig SetConfig IsEnabled EnableDisable GetExclusionList \
         SetExclusionList WSRMActivate IsWSRMActivated RestoreExclusionList",
    ),
    (
        0x22e5_386d_8b12_4bf0_b0ec_6a1e_a419_e366,
        "RpcNetEventOpenSession RpcNetEventReceiveData RpcNetEventCloseSession",
    ),
    (
        0x2982_2ab7_f302_11d0_9953_00c0_4fd9_19c1,
        "- - - AppCreate AppDelete AppUnLoad AppGetStatus AppDeleteRecoverable AppRecover",
    ),
    (0x2982_2ab8_f302_11d0_9953_00c0_4fd9_19c1, "- - - - - - - - - AppCreate2"),
    (
        0x2a3e_b639_d134_422d_90d8_aaa1_b521_6202,
        "- - - - - - - ExportObjects GetImportConflicts ImportXml ExportXml",
    ),
    (
        0x2f59_a331_bf7d_48cb_9ec5_7c09_0d76_e8b8,
        "RpcLicensingOpenServer RpcLicensingCloseServer RpcLicensingLoadPolicy \
         RpcLicensingUnloadPolicy RpcLicensingSetPolicy RpcLicensingGetAvailablePolicyIds \
         RpcLicensingGetPolicy RpcLicensingGetPolicyInformation \
         RpcLicensingDeactivateCurrentPolicy",
    ),
    (
        0x2f5f_3220_c126_1076_b549_074d_0786_19da,
        "NDdeShareAddW NDdeShareDelA NDdeShareDelW NDdeGetShareSecurityA \
         NDdeGetShareSecurityW NDdeSetShareSecurityA NDdeSetShareSecurityW NDdeShareEnumA \
         NDdeShareEnumW NDdeShareGetInfoW NDdeShareSetInfoW NDdeSetTrustedShareA \
         NDdeSetTrustedShareW NDdeGetTrustedShareA NDdeGetTrustedShareW \
         NDdeTrustedShareEnumA NDdeTrustedShareEnumW - NDdeSpecialCommand",
    ),
    (0x2f5f_6520_ca46_1067_b319_00dd_0106_62da, "ClientAttach ClientRequest ClientDetach"),
    (0x2f5f_6521_ca47_1068_b319_00dd_0106_62db, "RemoteSPAttach RemoteSPEventProc RemoteSPDetach"),
    (
        0x300f_3532_38cc_11d0_a3f0_0020_af6b_0add,
        "Opnum0NotUsedOnWire Opnum1NotUsedOnWire Opnum2NotUsedOnWire Opnum3NotUsedOnWire \
         Opnum4NotUsedOnWire Opnum5NotUsedOnWire Opnum6NotUsedOnWire Opnum7NotUsedOnWire \
         Opnum8NotUsedOnWire Opnum9NotUsedOnWire Opnum10NotUsedOnWire Opnum11NotUsedOnWire \
         LnkSearchMachine",
    ),
    (
        0x338c_d001_2244_31f1_aaaa_9000_3800_1003,
        "OpenClassesRoot OpenCurrentUser OpenLocalMachine OpenPerformanceData OpenUsers \
         BaseRegCloseKey BaseRegCreateKey BaseRegDeleteKey BaseRegDeleteValue \
         BaseRegEnumKey BaseRegEnumValue BaseRegFlushKey BaseRegGetKeySecurity \
         BaseRegLoadKey BaseRegNotifyChangeKeyValue BaseRegOpenKey BaseRegQueryInfoKey \
         BaseRegQueryValue BaseRegReplaceKey BaseRegRestoreKey BaseRegSaveKey \
         BaseRegSetKeySecurity BaseRegSetValue BaseRegUnLoadKey BaseInitiateSystemShutdown \
         BaseAbortSystemShutdown BaseRegGetVersion OpenCurrentConfig OpenDynData \
         BaseRegQueryMultipleValues BaseInitiateSystemShutdownEx BaseRegSaveKeyEx \
         OpenPerformanceText OpenPerformanceNlsText BaseRegQueryMultipleValues2 \
         BaseRegDeleteKeyEx",
    ),
    (
        0x342c_fd40_3c6c_11ce_a893_0800_2b2e_9c6d,
        "LlsrConnect LlsrClose LlsrLicenseEnumW LlsrLicenseEnumA LlsrLicenseAddW \
         LlsrLicenseAddA LlsrProductEnumW LlsrProductEnumA LlsrProductAddW LlsrProductAddA \
         LlsrProductUserEnumW LlsrProductUserEnumA LlsrProductServerEnumW \
         LlsrProductServerEnumA LlsrProductLicenseEnumW LlsrProductLicenseEnumA \
         LlsrUserEnumW LlsrUserEnumA LlsrUserInfoGetW LlsrUserInfoGetA LlsrUserInfoSetW \
         LlsrUserInfoSetA LlsrUserDeleteW LlsrUserDeleteA LlsrUserProductEnumW \
         LlsrUserProductEnumA LlsrUserProductDeleteW LlsrUserProductDeleteA \
         LlsrMappingEnumW LlsrMappingEnumA LlsrMappingInfoGetW LlsrMappingInfoGetA \
         LlsrMappingInfoSetW LlsrMappingInfoSetA LlsrMappingUserEnumW LlsrMappingUserEnumA \
         LlsrMappingUserAddW LlsrMappingUserAddA LlsrMappingUserDeleteW \
         LlsrMappingUserDeleteA LlsrMappingAddW LlsrMappingAddA LlsrMappingDeleteW \
         LlsrMappingDeleteA LlsrServerEnumW LlsrServerEnumA LlsrServerProductEnumW \
         LlsrServerProductEnumA LlsrLocalProductEnumW LlsrLocalProductEnumA \
         LlsrLocalProductInfoGetW LlsrLocalProductInfoGetA LlsrLocalProductInfoSetW \
         LlsrLocalProductInfoSetA LlsrServiceInfoGetW LlsrServiceInfoGetA \
         LlsrServiceInfoSetW LlsrServiceInfoSetA LlsrReplConnect LlsrReplClose \
         LlsrReplicationRequestW LlsrReplicationServerAddW LlsrReplicationServerServiceAddW \
         LlsrReplicationServiceAddW LlsrReplicationUserAddW LlsrProductSecurityGetW \
         LlsrProductSecurityGetA LlsrProductSecuritySetW LlsrProductSecuritySetA \
         LlsrProductLicensesGetA LlsrProductLicensesGetW LlsrCertificateClaimEnumA \
         LlsrCertificateClaimEnumW LlsrCertificateClaimAddCheckA \
         LlsrCertificateClaimAddCheckW LlsrCertificateClaimAddA LlsrCertificateClaimAddW \
         LlsrReplicationCertDbAddW LlsrReplicationProductSecurityAddW \
         LlsrReplicationUserAddExW LlsrCapabilityGet LlsrLocalServiceEnumW \
         LlsrLocalServiceEnumA LlsrLocalServiceAddA LlsrLocalServiceAddW \
         LlsrLocalServiceInfoSetW LlsrLocalServiceInfoSetA LlsrLocalServiceInfoGetW \
         LlsrLocalServiceInfoGetA LlsrCloseEx",
    ),
    (
        0x367a_bb81_9844_35f1_ad32_98f0_3800_1003,
        "CloseServiceHandle ControlService DeleteService LockServiceDatabase \
         QueryServiceObjectSecurity SetServiceObjectSecurity QueryServiceStatus \
         SetServiceStatus UnlockServiceDatabase NotifyBootConfigStatus ScSetServiceBitsW \
         ChangeServiceConfigW CreateServiceW EnumDependentServicesW EnumServicesStatusW \
         OpenSCManagerW OpenServiceW QueryServiceConfigW QueryServiceLockStatusW \
         StartServiceW GetServiceDisplayNameW GetServiceKeyNameW ScSetServiceBitsA \
         ChangeServiceConfigA CreateServiceA EnumDependentServicesA EnumServicesStatusA \
         OpenSCManagerA OpenServiceA QueryServiceConfigA QueryServiceLockStatusA \
         StartServiceA GetServiceDisplayNameA GetServiceKeyNameA ScGetCurrentGroupStateW \
         EnumServiceGroupW ChangeServiceConfig2A ChangeServiceConfig2W QueryServiceConfig2A \
         QueryServiceConfig2W QueryServiceStatusEx EnumServicesStatusExA \
         EnumServicesStatusExW ScSendTSMessage CreateServiceWOW64A CreateServiceWOW64W \
         ScQueryServiceTagInfo NotifyServiceStatusChange GetNotifyResult CloseNotifyHandle \
         ControlServiceExA ControlServiceExW ScSendPnPMessage ScValidatePnPService \
         ScOpenServiceStatusHandle - QueryServiceConfigEx - - - CreateWowService - - - \
         OpenSCManager2",
    ),
    (
        0x378e_52b0_c0a9_11cf_822d_00aa_0051_e40f,
        "SASetAccountInformation SASetNSAccountInformation SAGetNSAccountInformation \
         SAGetAccountInformation",
    ),
    (
        0x3919_286a_b10c_11d0_9ba8_00c0_4fd9_2ef5,
        "DsRolerGetPrimaryDomainInformation DsRolerDnsNameToFlatName DsRolerDcAsDc \
         DsRolerDcAsReplica DsRolerDemoteDc DsRolerGetDcOperationProgress \
         DsRolerGetDcOperationResults DsRolerCancel DsRolerServerSaveStateForUpgrade \
         DsRolerUpgradeDownlevelServer DsRolerAbortDownlevelServerUpgrade",
    ),
    (0x3a41_0f21_553f_11d1_8e5e_00a0_c92c_9d5d, "- - - CreateRemoteObject"),
    (
        0x3c47_28c5_f0ab_448b_bda1_6ce0_1eb0_a6d5,
        "RpcSrvEnableDhcp RpcSrvRenewLease RpcSrvRenewLeaseByBroadcast RpcSrvReleaseLease \
         RpcSrvSetFallbackParams RpcSrvGetFallbackParams RpcSrvFallbackRefreshParams \
         RpcSrvStaticRefreshParams RpcSrvRemoveDnsRegistrations RpcSrvRequestParams \
         RpcSrvPersistentRequestParams RpcSrvRegisterParams RpcSrvDeRegisterParams \
         RpcSrvEnumInterfaces RpcSrvQueryLeaseInfo RpcSrvSetClassId RpcSrvGetClassId \
         RpcSrvSetClientId RpcSrvGetClientId RpcSrvNotifyMediaReconnected \
         RpcSrvGetOriginalSubnetMask RpcSrvSetMSFTVendorSpecificOptions \
         RpcSrvRequestCachedParams RpcSrvRegisterConnectionStateNotification \
         RpcSrvDeRegisterConnectionStateNotification RpcSrvGetNotificationStatus \
         RpcSrvGetDhcpServicedConnections",
    ),
    (
        0x3c47_28c5_f0ab_448b_bda1_6ce0_1eb0_a6d6,
        "RpcSrvRequestPrefix RpcSrvRenewPrefix RpcSrvReleasePrefix RpcSrvRequestParams",
    ),
    (
        0x3c74_5a97_f375_4150_be17_5950_f694_c699,
        "- - - - - - CreateVirtualSmartCardWithAttestation",
    ),
    (0x3dde_7c30_165d_11d1_ab8f_0080_5f14_db40, "bkrp_BackupKey"),
    (
        0x3faf_4738_3a21_4307_b46c_fdda_9bb8_c0d5,
        "gfxCreateZoneFactoriesList gfxCreateGfxFactoriesList gfxCreateGfxList gfxRemoveGfx \
         gfxAddGfx gfxModifyGx gfxOpenGfx gfxLogon gfxLogoff \
         winmmRegisterSessionNotificationEvent winmmUnregisterSessionNotification \
         winmmSessionConnectState wdmDriverOpenDrvRegKey winmmAdvisePreferredDeviceChange \
         winmmGetPnpInfo",
    ),
    (
        0x44e2_65dd_7daf_42cd_8560_3cdb_6e7a_2729,
        "Opnum0NotUsedOnWire TsProxyCreateTunnel TsProxyAuthorizeTunnel \
         TsProxyMakeTunnelCall TsProxyCreateChannel Opnum5NotUsedOnWire TsProxyCloseChannel \
         TsProxyCloseTunnel TsProxySetupReceivePipe TsProxySendToServer",
    ),
    (
        0x45f5_2c28_7f9f_101a_b52b_0800_2b2e_fabe,
        "R_WinsRecordAction R_WinsStatus R_WinsTrigger R_WinsDoStaticInit \
         R_WinsDoScavenging R_WinsGetDbRecs R_WinsTerm R_WinsBackup R_WinsDelDbRecs \
         R_WinsPullRange R_WinsSetPriorityClass R_WinsResetCounters R_WinsWorkerThdUpd \
         R_WinsGetNameAndAdd R_WinsGetBrowserNames_Old R_WinsDeleteWins R_WinsSetFlags \
         R_WinsGetBrowserNames R_WinsGetDbRecsByName R_WinsStatusNew R_WinsStatusWHdl \
         R_WinsDoScavengingNew",
    ),
    (
        0x481e_06cf_ab04_4498_8ffe_124a_0a34_296d,
        "- - - - - - - GetCalendarInfo CreateCalendar ModifyCalendar DeleteCalendar \
         RenameCalendar ComputeEvents GetScheduleInfo CreateSchedule ModifySchedule \
         DeleteSchedule RenameSchedule MoveBeforeCalendar MoveAfterCalendar \
         GetServerTimeZone",
    ),
    (
        0x4848_09d6_4239_471b_b5bc_61df_8c23_ac48,
        "RpcWaitForSessionState RpcRegisterAsyncNotification RpcWaitAsyncNotification \
         RpcUnRegisterAsyncNotification",
    ),
    (
        0x497d_95a6_2d27_4bf5_9bbd_a604_6957_133c,
        "RpcOpenListener RpcCloseListener RpcStopListener RpcStartListener RpcIsListening",
    ),
    (
        0x4b11_2204_0e19_11d3_b42b_0000_f81f_eb9f,
        "RegisterServiceRpc DeregisterServiceRpcByUSN DeregisterServiceRpc UpdateCacheRpc \
         LookupCacheRpc CleanupCacheRpc InitializeSyncHandle RemoveSyncHandle \
         RegisterNotificationRpc GetNotificationRpc WakeupGetNotificationRpc \
         DeregisterNotificationRpc EnableDeviceHost DisableDeviceHost SetICSInterfaces \
         SetICSOff",
    ),
    (
        0x4b32_4fc8_1670_01d3_1278_5a47_bf6e_e188,
        "NetrCharDevEnum NetrCharDevGetInfo NetrCharDevControl NetrCharDevQEnum \
         NetrCharDevQGetInfo NetrCharDevQSetInfo NetrCharDevQPurge NetrCharDevQPurgeSelf \
         NetrConnectionEnum NetrFileEnum NetrFileGetInfo NetrFileClose NetrSessionEnum \
         NetrSessionDel NetrShareAdd NetrShareEnum NetrShareGetInfo NetrShareSetInfo \
         NetrShareDel NetrShareDelSticky NetrShareCheck NetrServerGetInfo NetrServerSetInfo \
         NetrServerDiskEnum NetrServerStatisticsGet NetrServerTransportAdd \
         NetrServerTransportEnum NetrServerTransportDel NetrRemoteTOD \
         NetrServerSetServiceBits NetprPathType NetprPathCanonicalize NetprPathCompare \
         NetprNameValidate NetprNameCanonicalize NetprNameCompare NetrShareEnumSticky \
         NetrShareDelStart NetrShareDelCommit NetrpGetFileSecurity NetrpSetFileSecurity \
         NetrServerTransportAddEx NetrServerSetServiceBitsEx NetrDfsGetVersion \
         NetrDfsCreateLocalPartition NetrDfsDeleteLocalPartition NetrDfsSetLocalVolumeState \
         NetrDfsSetServerInfo NetrDfsCreateExitPoint NetrDfsDeleteExitPoint \
         NetrDfsModifyPrefix NetrDfsFixLocalVolume NetrDfsManagerReportSiteInfo \
         NetrServerTransportDelEx - NetrServerAliasEnum NetrServerAliasDel NetrShareDelEx",
    ),
    (0x4bb8_ab1d_9ef9_4100_8eb6_dd4b_4e41_8b72, "- - - CreateObject DeleteObject ModifyObject"),
    (0x4bda_fc52_fe6a_11d2_93f8_0010_5a11_164a, "- - - GetMaxAdjustedFreeSpace"),
    (0x4d9f_4ab8_7d1c_11cf_861e_0020_af6e_7c57, "RemoteActivation"),
    (0x4da1_c422_943d_11d1_acae_00c0_4fc2_aa3f, "LnkSvrMessage LnkSvrMessageCallback"),
    (
        0x4f7c_a01c_a9e5_45b6_b142_2332_a133_9c1d,
        "- - - - - - - CreateAccountingDb GetAccountingMetadata ExecuteAccountingQuery \
         GetRawAccountingData GetNextAccountingDataBatch DeleteAccountingData DefragmentDB \
         CancelAccountingQuery RegisterAccountingClient DumpAccountingData \
         GetAccountingClients SetAccountingClientStatus CheckAccountingConnection \
         SetClientPermissions",
    ),
    (
        0x4fc7_42e0_4a10_11cf_8273_00aa_004a_e673,
        "NetrDfsManagerGetVersion NetrDfsAdd NetrDfsRemove NetrDfsSetInfo NetrDfsGetInfo \
         NetrDfsEnum NetrDfsRename NetrDfsMove NetrDfsManagerGetConfigInfo \
         NetrDfsManagerSendSiteInfo NetrDfsAddFtRoot NetrDfsRemoveFtRoot NetrDfsAddStdRoot \
         NetrDfsRemoveStdRoot NetrDfsManagerInitialize NetrDfsAddStdRootForced \
         NetrDfsGetDcAddress NetrDfsSetDcAddress NetrDfsFlushFtTable NetrDfsAdd2 \
         NetrDfsRemove2 NetrDfsEnumEx NetrDfsSetInfo2 NetrDfsAddRootTarget \
         NetrDfsRemoveRootTarget NetrDfsGetSupportedNamespaceVersion",
    ),
    (
        0x50ab_c2a4_574d_40b3_9d66_ee4f_d5fb_a076,
        "DnssrvOperation DnssrvQuery DnssrvComplexOperation DnssrvEnumRecords \
         DnssrvUpdateRecord DnssrvOperation2 DnssrvQuery2 DnssrvComplexOperation2 \
         DnssrvEnumRecords2 DnssrvUpdateRecord2 DnssrvUpdateRecord3 DnssrvEnumRecords3 \
         DnssrvOperation3 DnssrvQuery3 DnssrvComplexOperation3 DnssrvOperation4 \
         DnssrvQuery4 DnssrvUpdateRecord4 DnssrvEnumRecords4",
    ),
    (0x53b4_6b02_c73b_4a3e_8dee_b16b_8067_2fc0, "RpcGetSessionIP"),
    (
        0x5422_fd3a_d4b8_4cef_a12e_e87d_4ca2_2e90,
        "- - - Request GetCACert Ping Request2 GetCAProperty GetCAPropertyInfo Ping2",
    ),
    (0x5767_4cd0_5200_11ce_a897_0800_2b2e_9c6d, "LlsrLicenseRequestW LlsrLicenseFree"),
    (
        0x5960_2eb6_57b0_4fd8_aa4b_ebf0_6971_fe15,
        "- - - - - - - GetPolicyInfo CreatePolicy ModifyPolicy DeletePolicy \
         RenameAllocationPolicy MoveBefore MoveAfter SetCalDefaultPolicyName \
         GetCalDefaultPolicyName GetProcessList GetCurrentPolicy SetCurrentPolicy \
         GetCurrentStateAndActivePolicyName GetConditionalPolicy SetConditionalPolicy",
    ),
    (0x5a7b_91f8_ff00_11d0_a9b2_00c0_4fb6_e6fc, "NetrSendMessage"),
    (
        0x5b82_1720_f63b_11d0_aad2_00c0_4fc3_24db,
        "R_DhcpEnumSubnetClientsV5 R_DhcpSetMScopeInfo R_DhcpGetMScopeInfo \
         R_DhcpEnumMScopes R_DhcpAddMScopeElement R_DhcpEnumMScopeElements \
         R_DhcpRemoveMScopeElement R_DhcpDeleteMScope R_DhcpScanMDatabase \
         R_DhcpCreateMClientInfo R_DhcpSetMClientInfo R_DhcpGetMClientInfo \
         R_DhcpDeleteMClientInfo R_DhcpEnumMScopeClients R_DhcpCreateOptionV5 \
         R_DhcpSetOptionInfoV5 R_DhcpGetOptionInfoV5 R_DhcpEnumOptionsV5 \
         R_DhcpRemoveOptionV5 R_DhcpSetOptionValueV5 R_DhcpSetOptionValuesV5 \
         R_DhcpGetOptionValueV5 R_DhcpEnumOptionValuesV5 R_DhcpRemoveOptionValueV5 \
         R_DhcpCreateClass R_DhcpModifyClass R_DhcpDeleteClass R_DhcpGetClassInfo \
         R_DhcpEnumClasses R_DhcpGetAllOptions R_DhcpGetAllOptionValues \
         R_DhcpGetMCastMibInfo R_DhcpAuditLogSetParams R_DhcpAuditLogGetParams \
         R_DhcpServerQueryAttribute R_DhcpServerQueryAttributes \
         R_DhcpServerRedoAuthorization R_DhcpAddSubnetElementV5 R_DhcpEnumSubnetElementsV5 \
         R_DhcpRemoveSubnetElementV5 R_DhcpGetServerBindingInfo R_DhcpSetServerBindingInfo \
         R_DhcpQueryDnsRegCredentials R_DhcpSetDnsRegCredentials R_DhcpBackupDatabase \
         R_DhcpRestoreDatabase R_DhcpGetServerSpecificStrings R_DhcpCreateOptionV6 \
         R_DhcpSetOptionInfoV6 R_DhcpGetOptionInfoV6 R_DhcpEnumOptionsV6 \
         R_DhcpRemoveOptionV6 R_DhcpSetOptionValueV6 R_DhcpEnumOptionValuesV6 \
         R_DhcpRemoveOptionValueV6 R_DhcpGetAllOptionsV6 R_DhcpGetAllOptionValuesV6 \
         R_DhcpCreateSubnetV6 R_DhcpEnumSubnetsV6 R_DhcpAddSubnetElementV6 \
         R_DhcpEnumSubnetElementsV6 R_DhcpRemoveSubnetElementV6 R_DhcpDeleteSubnetV6 \
         R_DhcpGetSubnetInfoV6 R_DhcpEnumSubnetClientsV6 R_DhcpServerSetConfigV6 \
         R_DhcpServerGetConfigV6 R_DhcpGetMibInfoV6 - R_DhcpGetServerBindingInfoV6 \
         R_DhcpSetServerBindingInfoV6 R_DhcpSetClientInfoV6 R_DhcpGetClientInfoV6 \
         R_DhcpDeleteClientInfoV6 R_DhcpCreateClassV6 R_DhcpModifyClassV6 \
         R_DhcpDeleteClassV6 R_DhcpEnumClassesV6 R_DhcpGetOptionValueV6 \
         R_DhcpSetSubnetDelayOffer R_DhcpGetSubnetDelayOffer R_DhcpGetMibInfoV5 \
         R_DhcpAddFilterV4 R_DhcpDeleteFilterV4 R_DhcpSetFilterV4 R_DhcpGetFilterV4 \
         R_DhcpEnumFilterV4 R_DhcpSetDnsRegCredentialsV5 \
         R_DhcpEnumSubnetClientsFilterStatusInfo R_DhcpV4FailoverCreateRelationship \
         R_DhcpV4FailoverSetRelationship R_DhcpV4FailoverDeleteRelationship \
         R_DhcpV4FailoverGetRelationship R_DhcpV4FailoverEnumRelationship \
         R_DhcpV4FailoverAddScopeToRelationship R_DhcpV4FailoverDeleteScopeFromRelationship \
         R_DhcpV4FailoverGetScopeRelationship R_DhcpV4FailoverGetScopeStatistics \
         R_DhcpV4FailoverGetClientInfo R_DhcpV4FailoverGetSystemTime \
         R_DhcpV4FailoverTriggerAddrAllocation R_DhcpV4SetOptionValue \
         R_DhcpV4SetOptionValues R_DhcpV4GetOptionValue R_DhcpV4RemoveOptionValue \
         R_DhcpV4GetAllOptionValues R_DhcpV4QueryPolicyEnforcement \
         R_DhcpSetPolicyEnforcement R_DhcpV4CreatePolicy R_DhcpV4GetPolicy \
         R_DhcpV4SetPolicy R_DhcpV4DeletePolicy R_DhcpV4EnumPolicies R_DhcpV4AddPolicyRange \
         R_DhcpV4RemovePolicyRange R_DhcpV4EnumSubnetClients \
         R_DhcpV6SetStatelessStoreParams R_DhcpV6GetStatelessStoreParams \
         R_DhcpV6GetStatelessStatistics R_DhcpV4EnumSubnetReservations \
         R_DhcpV4GetFreeIPAddress R_DhcpV6GetFreeIPAddress R_DhcpV4CreateClientInfo \
         R_DhcpV4GetClientInfo R_DhcpV6CreateClientInfo R_DhcpV4FailoverGetAddressStatus \
         R_DhcpV4CreatePolicyEx R_DhcpV4GetPolicyEx R_DhcpV4SetPolicyEx \
         R_DhcpV4EnumPoliciesEx R_DhcpV4EnumSubnetClientsEx R_DhcpV4CreateClientInfoEx \
         R_DhcpV4GetClientInfoEx",
    ),
    (
        0x5ca4_a760_ebb1_11cf_8611_00a0_2454_20ed,
        "RpcWinStationOpenServer RpcWinStationCloseServer RpcIcaServerPing \
         RpcWinStationEnumerate RpcWinStationRename RpcWinStationQueryInformation \
         RpcWinStationSetInformation RpcWinStationSendMessage RpcLogonIdFromWinStationName \
         RpcWinStationNameFromLogonId RpcWinStationConnect RpcWinStationVirtualOpen \
         RpcWinStationBeepOpen RpcWinStationDisconnect RpcWinStationReset \
         RpcWinStationShutdownSystem RpcWinStationWaitSystemEvent RpcWinStationShadow \
         RpcWinStationShadowTargetSetup RpcWinStationShadowTarget \
         RpcWinStationGenerateLicense RpcWinStationInstallLicense \
         RpcWinStationEnumerateLicenses RpcWinStationActivateLicense \
         RpcWinStationRemoveLicense RpcWinStationQueryLicense RpcWinStationSetPoolCount \
         RpcWinStationQueryUpdateRequired RpcWinStationCallback \
         RpcWinStationGetApplicationInfo RpcWinStationReadRegistry \
         RpcWinStationWaitForConnect RpcWinStationNotifyLogon RpcWinStationNotifyLogoff \
         RpcWinStationEnumerateProcesses RpcWinStationAnnoyancePopup \
         RpcWinStationEnumerateProcesses RpcWinStationTerminateProcess \
         RpcServerNWLogonSetAdmin RpcServerNWLogonQueryAdmin RpcWinStationNtsdDebug \
         RpcWinStationBreakPoint RpcWinStationCheckForApplicationName \
         RpcWinStationGetAllProcesses RpcWinStationGetProcessSid \
         RpcWinStationGetTermSrvCountersValue RpcWinStationReInitializeSecurity \
         RpcWinStationBroadcastSystemMessage RpcWinStationSendWindowMessage \
         RpcWinStationNotifyNewSession RpcServerGetInternetConnectorStatus \
         RpcServerSetInternetConnectorStatus RpcServerQueryInetConnectorInformation \
         RpcWinStationGetLanAdapterName RpcWinStationUpdateUserConfig \
         RpcWinStationQueryLogonCredentials RpcWinStationRegisterConsoleNotification \
         RpcWinStationUnRegisterConsoleNotification RpcWinStationUpdateSettings \
         RpcWinStationShadowStop RpcWinStationCloseServerEx \
         RpcWinStationIsHelpAssistantSession RpcWinStationGetMachinePolicy \
         RpcWinStationUpdateClientCachedCredentials RpcWinStationFUSCanRemoteUserDisconnect \
         RpcWinStationCheckLoopBack RpcConnectCallback RpcWinStationNotifyDisconnectPipe \
         RpcWinStationSessionInitialized RpcRemoteAssistancePrepareSystemRestore \
         RpcWinStationGetAllProcesses_NT6 RpcWinStationRegisterNotificationEvent \
         RpcWinStationUnRegisterNotificationEvent RpcWinStationAutoReconnect \
         RpcWinStationCheckAccess RpcWinStationOpenSessionDirectory",
    ),
    (
        0x6619_a740_8154_43be_a186_0319_578e_02db,
        "- - - - - - - RemoteDispatchAutoDone RemoteDispatchNotAutoDone",
    ),
    (0x68b5_8241_c259_4f03_a2e5_a265_1dcb_c930, "KSrSubmitRequest KSrGetTemplates KSrGetCAs"),
    (
        0x6b5b_dd1e_528c_422c_af8c_a407_9be4_fe48,
        "RRPC_FWOpenPolicyStore RRPC_FWClosePolicyStore RRPC_FWRestoreDefaults \
         RRPC_FWGetGlobalConfig RRPC_FWSetGlobalConfig RRPC_FWAddFirewallRule \
         RRPC_FWSetFirewallRule RRPC_FWDeleteFirewallRule RRPC_FWDeleteAllFirewallRules \
         RRPC_FWEnumFirewallRules RRPC_FWGetConfig RRPC_FWSetConfig \
         RRPC_FWAddConnectionSecurityRule RRPC_FWSetConnectionSecurityRule \
         RRPC_FWDeleteConnectionSecurityRule RRPC_FWEnumConnectionSecurityRules \
         RRPC_FWEnumConnectionSecurityRules RRPC_FWAddAuthenticationSet \
         RRPC_FWSetAuthenticationSet RRPC_FWDeleteAuthenticationSet \
         RRPC_FWDeleteAllAuthenticationSets RRPC_FWEnumAuthenticationSets \
         RRPC_FWAddCryptoSet RRPC_FWSetCryptoSet RRPC_FWDeleteCryptoSet \
         RRPC_FWDeleteAllCryptoSets RRPC_FWEnumCryptoSets RRPC_FWEnumPhase1SAs \
         RRPC_FWEnumPhase2SAs RRPC_FWDeletePhase1SAs RRPC_FWDeletePhase2SAs \
         RRPC_FWEnumProducts RRPC_FWAddMainModeRule RRPC_FWSetMainModeRule \
         RRPC_FWDeleteMainModeRule RRPC_FWDeleteAllMainModeRules RRPC_FWEnumMainModeRules \
         RRPC_FWQueryFirewallRules RRPC_FWQueryConnectionSecurityRules \
         RRPC_FWQueryMainModeRules RRPC_FWQueryAuthenticationSets RRPC_FWQueryCryptoSets \
         RRPC_FWEnumNetworks RRPC_FWEnumAdapters RRPC_FWGetGlobalConfig2_10 \
         RRPC_FWGetConfig2_10 RRPC_FWAddFirewallRule2_10 RRPC_FWSetFirewallRule2_10 \
         RRPC_FWEnumFirewallRules2_10 RRPC_FWAddConnectionSecurityRule2_10 \
         RRPC_FWSetConnectionSecurityRule2_10 RRPC_FWEnumConnectionSecurityRules2_10 \
         RRPC_FWAddAuthenticationSet2_10 RRPC_FWSetAuthenticationSet2_10 \
         RRPC_FWEnumAuthenticationSets2_10 RRPC_FWAddCryptoSet2_10 RRPC_FWSetCryptoSet2_10 \
         RRPC_FWEnumCryptoSets2_10 RRPC_FWAddConnectionSecurityRule2_20 \
         RRPC_FWSetConnectionSecurityRule2_20 RRPC_FWEnumConnectionSecurityRules2_20 \
         RRPC_FWQueryConnectionSecurityRules2_20 RRPC_FWAddAuthenticationSet2_20 \
         RRPC_FWEnumAuthenticationSets2_20 RRPC_FWQueryAuthenticationSets2_20 \
         RRPC_FWAddFirewallRule2_20 RRPC_FWSetFirewallRule2_20 RRPC_FWEnumFirewallRules2_20 \
         - RRPC_FWQueryFirewallRules2_20 RRPC_FWAddFirewallRule2_24 \
         RRPC_FWSetFirewallRule2_24 RRPC_FWEnumFirewallRules2_24 \
         RRPC_FWQueryFirewallRules2_24 RRPC_FWAddFirewallRule2_25 \
         RRPC_FWSetFirewallRule2_25 RRPC_FWEnumFirewallRules2_25 \
         RRPC_FWQueryFirewallRules2_25 RRPC_FWAddFirewallRule2_26 \
         RRPC_FWSetFirewallRule2_26 RRPC_FWEnumFirewallRules2_26 \
         RRPC_FWQueryFirewallRules2_26",
    ),
    (
        0x6bff_d098_a112_3610_9833_0128_9202_0162,
        "BrowserrServerEnum BrowserrDebugCall BrowserrQueryOtherDomains \
         BrowserrResetNetlogonState BrowserrDebugTrace BrowserrQueryStatistics \
         BrowserrResetStatistics NetrBrowserStatisticsClear NetrBrowserStatisticsGet \
         BrowserrSetNetlogonState BrowserrQueryEmulatedDomains BrowserrServerEnumEx",
    ),
    (
        0x6bff_d098_a112_3610_9833_46c3_f874_532d,
        "R_DhcpCreateSubnet R_DhcpSetSubnetInfo R_DhcpGetSubnetInfo R_DhcpEnumSubnets \
         R_DhcpAddSubnetElement R_DhcpEnumSubnetElements R_DhcpRemoveSubnetElement \
         R_DhcpDeleteSubnet R_DhcpCreateOption R_DhcpSetOptionInfo R_DhcpGetOptionInfo \
         R_DhcpRemoveOption R_DhcpSetOptionValue R_DhcpGetOptionValue \
         R_DhcpEnumOptionValues R_DhcpRemoveOptionValue R_DhcpCreateClientInfo \
         R_DhcpSetClientInfo R_DhcpGetClientInfo R_DhcpDeleteClientInfo \
         R_DhcpEnumSubnetClients R_DhcpGetClientOptions R_DhcpGetMibInfo R_DhcpEnumOptions \
         R_DhcpSetOptionValues R_DhcpServerSetConfig R_DhcpServerGetConfig \
         R_DhcpScanDatabase R_DhcpGetVersion R_DhcpAddSubnetElementV4 \
         R_DhcpEnumSubnetElementsV4 R_DhcpRemoveSubnetElementV4 R_DhcpCreateClientInfoV4 \
         R_DhcpSetClientInfoV4 R_DhcpGetClientInfoV4 R_DhcpEnumSubnetClientsV4 \
         R_DhcpSetSuperScopeV4 R_DhcpGetSuperScopeInfoV4 R_DhcpDeleteSuperScopeV4 \
         R_DhcpServerSetConfigV4 R_DhcpServerGetConfigV4 R_DhcpServerSetConfigVQ \
         R_DhcpServerGetConfigVQ R_DhcpGetMibInfoVQ R_DhcpCreateClientInfoVQ \
         R_DhcpSetClientInfoVQ R_DhcpGetClientInfoVQ R_DhcpEnumSubnetClientsVQ \
         R_DhcpCreateSubnetVQ R_DhcpGetSubnetInfoVQ R_DhcpSetSubnetInfoVQ",
    ),
    (
        0x6bff_d098_a112_3610_9833_46c3_f87e_345a,
        "NetrWkstaGetInfo NetrWkstaSetInfo NetrWkstaUserEnum NetrWkstaUserGetInfo \
         NetrWkstaUserSetInfo NetrWkstaTransportEnum NetrWkstaTransportAdd \
         NetrWkstaTransportDel NetrUseAdd NetrUseGetInfo NetrUseDel NetrUseEnum \
         NetrMessageBufferSend NetrWorkstationStatisticsGet NetrLogonDomainNameAdd \
         NetrLogonDomainNameDel NetrJoinDomain NetrUnjoinDomain NetrValidateName \
         NetrRenameMachineInDomain NetrGetJoinInformation NetrGetJoinableOUs \
         NetrJoinDomain2 NetrUnjoinDomain2 NetrRenameMachineInDomain2 NetrValidateName2 \
         NetrGetJoinableOUs2 NetrAddAlternateComputerName NetrRemoveAlternateComputerName \
         NetrSetPrimaryComputerName NetrEnumerateComputerNames NetrWorkstationResetDfsCache",
    ),
    (
        0x708c_ca10_9569_11d1_b2a5_0060_977d_8118,
        "S_DSGetComputerSites S_DSGetPropsEx S_DSGetPropsGuidEx S_DSBeginDeleteNotification \
         S_DSNotifyDelete S_DSEndDeleteNotification S_DSIsServerGC Opnum7NotUsedOnWire \
         S_DSGetGCListInDomain",
    ),
    (
        0x70b5_1430_b6ca_11d0_b9b9_00a0_c922_e750,
        "- - - AddKey DeleteKey DeleteChildKEys EnumKeys CopyKey RenameKey R_SetData \
         R_GetData DeleteDate R_EnumData R_GetAllData DeleteAllData CopyData GetDataPaths \
         OpenKey CloseKey ChangePermissions SaveData GetHandleInfo GetSystemChangeNumber \
         GetDataSetNumber SetLastChangeTime GetLastChangeTime R_KeyExchangePhase1 \
         R_KeyExchangePhase2 Backup Restore EnumBackups DeleteBackup UnmarshalInterface \
         R_GetServerGuid",
    ),
    (
        0x76f0_3f96_cdfd_44fc_a22c_6495_0a00_1209,
        "RpcAsyncOpenPrinter RpcAsyncAddPrinter RpcAsyncSetJob RpcAsyncGetJob \
         RpcAsyncEnumJobs RpcAsyncAddJob RpcAsyncScheduleJob RpcAsyncDeletePrinter \
         RpcAsyncSetPrinter RpcAsyncGetPrinter RpcAsyncStartDocPrinter \
         RpcAsyncStartPagePrinter RpcAsyncWritePrinter RpcAsyncEndPagePrinter \
         RpcAsyncEndDocPrinter RpcAsyncAbortPrinter RpcAsyncGetPrinterData \
         RpcAsyncGetPrinterDataEx RpcAsyncSetPrinterData RpcAsyncSetPrinterDataEx \
         RpcAsyncClosePrinter RpcAsyncAddForm RpcAsyncDeleteForm RpcAsyncGetForm \
         RpcAsyncSetForm RpcAsyncEnumForms RpcAsyncGetPrinterDriver RpcAsyncEnumPrinterData \
         RpcAsyncEnumPrinterDataEx RpcAsyncEnumPrinterKey RpcAsyncDeletePrinterData \
         RpcAsyncDeletePrinterDataEx RpcAsyncDeletePrinterKey RpcAsyncXcvData \
         RpcAsyncSendRecvBidiData RpcAsyncCreatePrinterIC RpcAsyncPlayGdiScriptOnPrinterIC \
         RpcAsyncDeletePrinterIC RpcAsyncEnumPrinters RpcAsyncAddPrinterDriver \
         RpcAsyncEnumPrinterDrivers RpcAsyncGetPrinterDriverDirectory \
         RpcAsyncDeletePrinterDriver RpcAsyncDeletePrinterDriverEx \
         RpcAsyncAddPrintProcessor RpcAsyncEnumPrintProcessors \
         RpcAsyncGetPrintProcessorDirectory RpcAsyncEnumPorts RpcAsyncEnumMonitors \
         RpcAsyncAddPort RpcAsyncSetPort RpcAsyncAddMonitor RpcAsyncDeleteMonitor \
         RpcAsyncDeletePrintProcessor RpcAsyncEnumPrintProcessorDatatypes \
         RpcAsyncAddPerMachineConnection RpcAsyncDeletePerMachineConnection \
         RpcAsyncEnumPerMachineConnections RpcSyncRegisterForRemoteNotifications \
         RpcSyncUnRegisterForRemoteNotifications RpcSyncRefreshRemoteNotifications \
         RpcAsyncGetRemoteNotifications RpcAsyncInstallPrinterDriverFromPackage \
         RpcAsyncUploadPrinterDriverPackage RpcAsyncGetCorePrinterDrivers \
         RpcAsyncCorePrinterDriverInstalled RpcAsyncGetPrinterDriverPackagePath \
         RpcAsyncDeletePrinterDriverPackage RpcAsyncReadPrinter RpcAsyncResetPrinter \
         RpcAsyncGetJobNamedPropertyValue RpcAsyncSetJobNamedProperty \
         RpcAsyncDeleteJobNamedProperty RpcAsyncEnumJobNamedProperties \
         RpcAsyncLogJobInfoForBranchOffice",
    ),
    (
        0x77df_7a80_f298_11d0_8358_00a0_24c4_80a8,
        "S_DSCreateObject S_DSDeleteObject S_DSGetProps S_DSSetProps S_DSGetObjectSecurity \
         S_DSSetObjectSecurity S_DSLookupBegin S_DSLookupNext S_DSLookupEnd \
         Opnum9NotUsedOnWire S_DSDeleteObjectGuid S_DSGetPropsGuid S_DSSetPropsGuid \
         S_DSGetObjectSecurityGuid S_DSSetObjectSecurityGuid Opnum15NotUsedOnWire \
         Opnum16NotUsedOnWire Opnum17NotUsedOnWire Opnum18NotUsedOnWire \
         S_DSQMSetMachineProperties S_DSCreateServersCache S_DSQMGetObjectSecurity \
         S_DSValidateServer S_DSCloseServerHandle Opnum24NotUsedOnWire Opnum25NotUsedOnWire \
         Opnum26NotUsedOnWire S_DSGetServerPort",
    ),
    (0x7c44_d7d4_31d5_424c_bd5e_2b3e_1f32_3d22, "IDL_DSAPrepareScript IDL_DSAExecuteScript"),
    (
        0x7c4e_1804_e342_483d_a43e_a850_cfcc_8d18,
        "- - - CreateApplication DeleteApplication CreateApplicationPool \
         DeleteApplicationPool EnumerateApplicationsInPool RecycleApplicationPool \
         GetProcessMode",
    ),
    (
        0x7fe0_d935_dda6_443f_85d0_1cfb_58fe_41dd,
        "- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - PublishCRLs \
         GetCAProperty SetCAProperty GetCAPropertyInfo EnumViewColumnTable GetCASecurity \
         SetCASecurity Ping2 GetArchivedKey GetAuditFilter SetAuditFilter GetOfficerRights \
         SetOfficerRights GetConfigEntry SetConfigEntry ImportKey GetMyRoles DeleteRow",
    ),
    (0x8111_09bf_a4e1_11d1_ab54_00a0_c91e_9b45, "R_WinsTombstoneDbRecs R_WinsCheckAccess"),
    (0x8165_b19e_8d3a_4d0b_80c8_97de_310d_b583, "- - - GetComponentInfo"),
    (
        0x8227_3fdc_e32a_18c3_3f78_8279_29dc_23ea,
        "ElfrClearELFW ElfrBackupELFW ElfrCloseEL ElfrDeregisterEventSource \
         ElfrNumberOfRecords ElfrOldestRecord ElfrChangeNotify ElfrOpenELW \
         ElfrRegisterEventSourceW ElfrOpenBELW ElfrReadELW ElfrReportEventW ElfrClearELFA \
         ElfrBackupELFA ElfrOpenELA ElfrRegisterEventSourceA ElfrOpenBELA ElfrReadELA \
         ElfrReportEventA ElfrRegisterClusterSvc ElfrDeregisterClusterSvc \
         ElfrWriteClusterEvents ElfrGetLogInformation ElfrFlushEL ElfrReportEventAndSourceW \
         ElfrReportEventExW ElfrReportEventExA",
    ),
    (
        0x8298_d101_f992_43b7_8eca_5052_d885_b995,
        "- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - \
         BackupWithPasswrd RestoreWithPasswrd Export Import RestoreHistory EnumHistory",
    ),
    (
        0x82ad_4280_036b_11cf_972c_00aa_0068_87b0,
        "R_InetInfoGetVersion R_InetInfoGetAdminInformation R_InsetInfoGetSites \
         R_InetInfoSetAdminInformation R_InetInfoGetGlobalAdminInformation \
         R_InetInfoSetGlobalAdminInformation R_InetInfoQueryStatistics \
         R_InetInfoClearStatistics R_InetInfoFlushMemoryCache \
         R_InetInfoGetServerCapabilities R_W3QueryStatistics2 R_W3ClearStatistics2 \
         R_FtpQueryStatistics2 R_FtpClearStatistics2 R_IISDEnumerateUsers \
         R_IISDisconnectedUser Opnum16NotUsedOnWire Opnum17NotUsedOnWire",
    ),
    (
        0x83da_7c00_e84f_11d2_9807_00c0_4f8e_c850,
        "SfcSrv_GetNextProtectedFile SfcSrv_IsFileProtected SfcSrv_FileException \
         SfcSrv_InitiateScan SfcSrv_PurgeCache SfcSrv_SetCacheSize SfcSrv_SetDisable \
         SfcSrv_InstallProtectedFiles",
    ),
    (
        0x86d3_5949_83c9_4044_b424_db36_3231_fd0c,
        "SchRpcHighestVersion SchRpcRegisterTask SchRpcRetrieveTask SchRpcCreateFolder \
         SchRpcSetSecurity SchRpcGetSecurity SchRpcEnumFolder SchRpcEnumTasks \
         SchRpcEnumInstances SchRpcGetInstanceInfo SchRpcStopInstance SchRpcStop SchRpcRun \
         SchRpcDelete SchRpcRename SchRpcScheduledRuntimes SchRpcGetLastRunInfo \
         SchRpcGetTaskInfo SchRpcGetNumberOfMissedRuns SchRpcEnableTask",
    ),
    (
        0x8814_3fd0_c28d_4b2b_8fef_8d88_2f6a_9390,
        "RpcOpenEnum RpcCloseEnum RpcFilterByState RpcFilterByCallersName RpcEnumAddFilter \
         RpcGetEnumResult RpcFilterBySessionType Opnum7NotUsedOnWire RpcGetSessionIds \
         RpcGetEnumResultEx RpcGetAllSessions RpcGetAllSessionsEx",
    ),
    (
        0x894d_e0c0_0d55_11d3_a322_00c0_4fa3_21a1,
        "BaseInitiateShutdown BaseAbortShutdown BaseInitiateShutdownEx",
    ),
    (
        0x897e_2e5f_93f3_4376_9c9c_fd22_7749_5c27,
        "CheckConnectivity EstablishConnection EstablishSession RequestUpdates \
         RequestVersionVector AsyncPoll RequestRecords UpdateCancel RawGetFileData \
         RdcGetSignatures RdcPushSourceNeeds RdcGetFileData RdcClose \
         InitializeFileTransferAsync Opnum14NotUsedOnWire RawGetFileDataAsync \
         RdcGetFileDataAsync RdcFileDataTransferKeepAlive",
    ),
    (
        0x8d0f_fe72_d252_11d0_bf8f_00c0_4fd9_126b,
        "KeyrOpenKeyService KeyrEnumerateProviders KeyrEnumerateProviderTypes \
         KeyrEnumerateProvContainers KeyrCloseKeyService KeyrGetDefaultProvider \
         KeyrSetDefaultProvider KeyrEnroll KeyrExportCert KeyrImportCert \
         KeyrEnumerateAvailableCertTypes KeyrEnumerateCAs KeyrEnroll_V2 \
         KeyrQueryRequestStatus",
    ),
    (
        0x8d9f_4e40_a03d_11ce_8f69_0800_3e30_051b,
        "PNP_Disconnect PNP_Connect PNP_GetVersion PNP_GetGlobalState PNP_InitDetection \
         PNP_ReportLogOn PNP_ValidateDeviceInstance PNP_GetRootDeviceInstance \
         PNP_GetRelatedDeviceInstance PNP_EnumerateSubKeys PNP_GetDeviceList \
         PNP_GetDeviceListSize PNP_GetDepth PNP_GetDeviceRegProp PNP_SetDeviceRegProp \
         PNP_GetClassInstance PNP_CreateKey PNP_DeleteRegistryKey PNP_GetClassCount \
         PNP_GetClassName PNP_DeleteClassKey PNP_GetInterfaceDeviceAlias \
         PNP_GetInterfaceDeviceList PNP_GetInterfaceDeviceListSize \
         PNP_RegisterDeviceClassAssociation PNP_UnregisterDeviceClassAssociation \
         PNP_GetClassRegProp PNP_SetClassRegProp PNP_CreateDevInst PNP_DeviceInstanceAction \
         PNP_GetDeviceStatus PNP_SetDeviceProblem PNP_DisableDevInst PNP_UninstallDevInst \
         PNP_AddID PNP_RegisterDriver PNP_QueryRemove PNP_RequestDeviceEject \
         PNP_IsDockStationPresent PNP_RequestEjectPC PNP_HwProfFlags PNP_GetHwProfInfo \
         PNP_AddEmptyLogConf PNP_FreeLogConf PNP_GetFirstLogConf PNP_GetNextLogConf \
         PNP_GetLogConfPriority PNP_AddResDes PNP_FreeResDes PNP_GetNextResDes \
         PNP_GetResDesData PNP_GetResDesDataSize PNP_ModifyResDes \
         PNP_DetectResourceConflict PNP_QueryResConfList PNP_SetHwProf \
         PNP_QueryArbitratorFreeData PNP_QueryArbitratorFreeSize PNP_RunDetection \
         PNP_RegisterNotification PNP_UnregisterNotification PNP_GetCustomDevProp \
         PNP_GetVersionInternal PNP_GetBlockedDriverInfo \
         PNP_GetServerSideDeviceInstallFlags PNP_GetObjectPropKeys PNP_GetObjectProp \
         PNP_SetObjectProp PNP_InstallDevInst PNP_ApplyPowerSettings \
         PNP_DriverStoreAddDriverPackage PNP_DriverStoreDeleteDriverPackage \
         PNP_RegisterServiceNotification PNP_SetActiveService PNP_DeleteServiceDevices",
    ),
    (
        0x8fb6_d884_2388_11d0_8c35_00c0_4fda_2795,
        "W32TimeSync W32TimeGetNetlogonServiceBits W32TimeQueryProviderStatus \
         W32TimeQuerySource W32TimeQueryProviderConfiguration W32TimeQueryConfiguration \
         W32TimeQueryStatus W32TimeLog",
    ),
    (0x91ae_6020_9e3c_11cf_8d7c_00aa_00c0_91be, "CertServerRequest"),
    (
        0x9439_91a5_b3fe_41fa_9696_7f7b_656e_e34b,
        "- - - - - - - CreateMachineGroup GetMachineGroupInfo ModifyMachineGroup \
         DeleteMachineGroup RenameMachineGroup AddMachine GetMachineInfo ModifyMachineInfo \
         DeleteMachine",
    ),
    (
        0x9556_dc99_828c_11cf_a37e_00aa_0032_40c7,
        "- - - OpenNamespace CancelAsyncCall QueryObjectSink GetObject GetObjectAsync \
         PutClass PutClassAsync DeleteClass DeleteClassAsync CreateClassEnum \
         CreateClassEnumAsync PutInstance PutInstanceAsync DeleteClass DeleteClassAsync \
         CreateInstanceEnum CreateInstanceEnumAsync ExecQuery ExecQueryAsync \
         ExecNotificationQuery ExecNotificationQueryAsync ExecMethod ExecMethodAsync",
    ),
    (
        0x99fc_fec4_5260_101b_bbcb_00aa_0021_347a,
        "ResolveOxid SimplePing ComplexPing ServerAlive ResolveOxid2 ServerAlive2",
    ),
    (
        0xa4f1_db00_ca47_1067_b31f_00dd_0106_62da,
        "EcDoConnect EcDoDisconnect EcDoRpc EcGetMoreRpc EcRRegisterPushNotification \
         EcRUnregisterPushNotification EcDummyRpc EcRGetDCName EcRNetGetDCName EcDoRpcExt \
         EcDoConnectEx EcDoRpcExt2 EcUnknown0xC EcUnknown0xD EcDoAsyncConnectEx",
    ),
    (
        0xa8e0_653c_2744_4389_a61d_7373_df8b_2292,
        "GetSupportedVersion SetContext StartShadowCopySet AddToShadowCopySet \
         CommitShadowCopySet ExposeShadowCopySet RecoveryCompleteShadowCopySet \
         AbortShadowCopySet IsPathSupported IsPathShadowCopied GetShareMapping \
         DeleteShareMapping PrepareShadowCopy",
    ),
    (0xae1c_7110_2f60_11d3_8a39_00c0_4f72_d8e3, "- - - Next Skip Reset Clone"),
    (
        0xafa8_bd80_7d8a_11c9_bef4_0800_2b10_2989,
        "inq_if_ids inq_stats is_server_listening stop_server_listening inq_princ_name",
    ),
    (0xafc0_7e2e_311c_4435_808c_c483_ffee_c7c9, "LsarGetAvailableCAPIDs"),
    (0xb978_5960_524f_11df_8b6d_83dc_ded7_2085, "GetKey"),
    (
        0xb97d_b8b2_4c63_11cf_bff6_0800_2be2_3f2f,
        "ApiOpenCluster ApiCloseCluster ApiSetClusterName ApiGetClusterName \
         ApiGetClusterVersion ApiGetQuorumResource ApiSetQuorumResource ApiCreateEnum \
         ApiOpenResource ApiCreateResource ApiDeleteResource ApiCloseResource \
         ApiGetResourceState ApiSetResourceName ApiGetResourceId ApiGetResourceType \
         ApiFailResource ApiOnlineResource ApiOfflineResource ApiAddResourceDependency \
         ApiRemoveResourceDependency ApiCanResourceBeDependent ApiCreateResEnum \
         ApiAddResourceNode ApiRemoveResourceNode ApiChangeResourceGroup \
         ApiCreateResourceType ApiDeleteResourceType ApiGetRootKey ApiCreateKey ApiOpenKey \
         ApiEnumKey ApiSetValue ApiDeleteValue ApiQueryValue ApiDeleteKey ApiEnumValue \
         ApiCloseKey ApiQueryInfoKey ApiSetKeySecurity ApiGetKeySecurity ApiOpenGroup \
         ApiCreateGroup ApiDeleteGroup ApiCloseGroup ApiGetGroupState ApiSetGroupName \
         ApiGetGroupId ApiGetNodeId ApiOnlineGroup ApiOfflineGroup ApiMoveGroup \
         ApiMoveGroupToNode ApiCreateGroupResourceEnum ApiSetGroupNodeList ApiCreateNotify \
         ApiCloseNotify ApiAddNotifyCluster ApiAddNotifyNode ApiAddNotifyGroup \
         ApiAddNotifyResource ApiAddNotifyKey ApiReAddNotifyNode ApiReAddNotifyGroup \
         ApiReAddNotifyResource ApiGetNotify ApiOpenNode ApiCloseNode ApiGetNodeState \
         ApiPauseNode ApiResumeNode ApiEvictNode ApiNodeResourceControl ApiResourceControl \
         ApiNodeResourceTypeControl ApiResourceTypeControl ApiNodeGroupControl \
         ApiGroupControl ApiNodeNodeControl ApiNodeControl Opnum80NotUsedOnWire \
         ApiOpenNetwork ApiCloseNetwork ApiGetNetworkState ApiSetNetworkName \
         ApiCreateNetworkEnum ApiGetNetworkId ApiSetNetworkPriorityOrder \
         ApiNodeNetworkControl ApiNetworkControl ApiAddNotifyNetwork ApiReAddNotifyNetwork \
         ApiOpenNetInterface ApiCloseNetInterface ApiGetNetInterfaceState \
         ApiGetNetInterface ApiGetNetInterfaceId ApiNodeNetInterfaceControl \
         ApiNetInterfaceControl ApiAddNotifyNetInterface ApiReAddNotifyNetInterface \
         ApiCreateNodeEnum ApiGetClusterVersion2 ApiCreateResTypeEnum \
         ApiBackupClusterDatabase ApiNodeClusterControl ApiClusterControl \
         ApiUnblockGetNotifyCall ApiSetServiceAccountPassword \
         ApiSetResourceDependencyExpression ApiGetResourceDependencyExpression - \
         ApiGetResourceNetworkName ApiExecuteBatch ApiCreateBatchPort \
         ApiGetBatchNotification ApiCloseBatchPort ApiOpenClusterEx ApiOpenNodeEx \
         ApiOpenGroupEx ApiOpenResourceEx ApiOpenNetworkEx ApiOpenNetInterfaceEx \
         ApiChangeCsvState ApiCreateNodeEnumEx ApiCreateEnumEx ApiPauseNodeEx \
         ApiPauseNodeWithDrainTarget ApiResumeNodeEx ApiCreateGroupEx ApiOnlineGroupEx \
         ApiOfflineGroupEx ApiMoveGroupEx ApiMoveGroupToNodeEx \
         ApiCancelClusterGroupOperation ApiOnlineResourceEx ApiOfflineResourceEx \
         ApiCreateNotifyV2 ApiAddNotifyV2 ApiGetNotifyV2 - - - ApiCreateGroupEnum \
         ApiCreateResourceEnum ApiExecuteReadBatch ApiRestartResource ApiGetNotifyAsync - - \
         - - - - - ApiAddNotifyResourceTypeV2 - ApiExecuteReadBatchEx - - - - - \
         ApiCreateGroupSet ApiOpenGroupSet ApiCloseGroupSet ApiDeleteGroupSet \
         ApiAddGroupToGroupSet ApiRemoveGroupFromGroupSet ApiMoveGroupToGroupSet - \
         ApiAddGroupSetDependency ApiAddGroupToGroupSetDependency ApiNodeGroupSetControl \
         ApiGroupSetControl ApiSetGroupDependencyExpression ApiRemoveClusterGroupDependency \
         ApiSetGroupSetDependencyExpression ApiRemoveGroupSetDependency \
         ApiRemoveClusterGroupToGroupSetDependency ApiCreateGroupSetEnum \
         ApiCreateNetInterfaceEnum ApiChangeCsvStateEx ApiAddGroupToGroupSetEx \
         ApiChangeResourceGroupEx",
    ),
    (
        0xbc68_1469_9dd9_4bf4_9b3d_709f_69ef_e431,
        "- - - - - - - GetResourceGroupInfo ModifyResourceGroup CreateResourceGroup \
         DeleteResourceGroup RenameResourceGroup",
    ),
    (
        0xbd0c_73bc_805b_4043_9c30_9a28_d64d_d7d2,
        "- - - - - - - Opnum7NotUsedOnWire Opnum8NotUsedOnWire Opnum9NotUsedOnWire \
         InstanceName Opnum11NotUsedOnWire IsInstallRemote Opnum13NotUsedOnWire \
         IsExportableRemote Opnum15NotUsedOnWire GetCertInfoRemote Opnum17NotUsedOnWire \
         Opnum18NotUsedOnWire Opnum19NotUsedOnWire Opnum20NotUsedOnWire \
         Opnum21NotUsedOnWire ImportFromBlob ImportFromBlobGetHash Opnum24NotUsedOnWire \
         ExportToBlob",
    ),
    (
        0xbde9_5fdf_eee0_45de_9e12_e5a6_1cd0_d4fe,
        "RpcGetClientData RpcGetConfigData RpcGetProtocolStatus RpcGetLastInputTime \
         RpcGetRemoteAddress Opnum5NotUsedOnWire Opnum6NotUsedOnWire Opnum7NotUsedOnWire \
         RpcGetAllListeners RpcGetSessionProtocolLastInputTime RpcGetUserCertificates \
         RpcQuerySessionData",
    ),
    (
        0xc386_ca3e_9061_4a72_821e_498d_83be_188f,
        "AudioServerConnect AudioServerDisconnect AudioServerInitialize \
         AudioServerGetAudioSession AudioServerCreateStream AudioServerDestroyStream \
         AudioServerGetStreamLatency AudioServerGetMixFormat AudioServerIsFormatSupported \
         AudioServerGetDevicePeriod AudioVolumeGetMasterVolumeLevelScalar \
         AudioSessionGetProcessId AudioSessionGetState AudioSessionGetLastActivation \
         AudioSessionGetLastInactivation AudioSessionIsSystemSoundsSession \
         AudioSessionGetDisplayName AudioSessionSetDisplayName AudioSessionGetSessionClass \
         AudioSessionSetSessionClass AudioSessionGetVolume AudioSessionSetVolume \
         AudioSessionGetMute AudioSessionSetMute AudioSessionGetChannelCount \
         AudioSessionSetChannelVolume AudioSessionGetChannelVolume \
         AudioSessionSetAllVolumes AudioSessionGetAllVolumes AudioServerDisconnect \
         AudioServerGetMixFormat PolicyConfigGetDeviceFormat PolicyConfigSetDeviceFormat \
         AudioServerGetDevicePeriod PolicyConfigSetProcessingPeriod \
         PolicyConfigGetShareMode PolicyConfigSetShareMode GetAudioSessionManager \
         AudioSessionManagerDestroy AudioSessionManagerGetAudioSession \
         AudioSessionManagerGetCurrentSession AudioSessionManagerGetExistingSession \
         AudioSessionManagerAddAudioSessionClientNotification \
         AudioSessionManagerDeleteAudioSessionClientNotification \
         AudioSessionManagerAddAudioSessionClientNotification AudioVolumeConnect \
         AudioVolumeDisconnect AudioVolumeGetChannelCount AudioVolumeSetMasterVolumeLevel \
         AudioVolumeSetMasterVolumeLevelScalar AudioVolumeGetMasterVolumeLevel \
         AudioVolumeGetMasterVolumeLevelScalar AudioVolumeSetChannelVolumeLevel \
         AudioVolumeSetChannelVolumeLevelScalar AudioVolumeGetChannelVolumeLevel \
         AudioVolumeGetChannelVolumeLevelScalar AudioVolumeSetMute \
         AudioSessionGetDisplayName AudioVolumeAddMasterVolumeNotification \
         AudioVolumeDeleteMasterVolumeNotification AudioMeterGetAverageRMS \
         AudioMeterGetChannelsRMS AudioMeterGetPeakValue AudioMeterGetChannelsPeakValues \
         AudioVolumeGetStepInfo AudioVolumeStepUp AudioVolumeStepDown",
    ),
    (0xc3fc_c19e_a970_11d2_8b5a_00a0_c9b7_c9c4, "- - - GetSerializedBuffer GetObjectIdentify"),
    (
        0xc4b0_c7d9_abe0_4733_a1e1_9fde_df26_0c7a,
        "- - - - - - CreateObject DeleteObject ModifyObject",
    ),
    (
        0xc5ce_bee2_9df5_4cdd_a08c_c247_1bc1_44b4,
        "- - - - - - - RetrieveEventList GetSystemAffinity ImportXMLFiles ExportXMLFiles \
         RestoreXMLFiles GetDependencies GetServiceList GetllSAppPoolNames GetServerName \
         GetCurrentMemory",
    ),
    (
        0xc681_d488_d850_11d0_8c52_00c0_4fd9_0f7e,
        "EfsRpcOpenFileRaw EfsRpcReadFileRaw EfsRpcWriteFileRaw EfsRpcCloseRaw \
         EfsRpcEncryptFileSrv EfsDecryptFileSrv EfsRpcQueryUsersOnFile \
         EfsRpcQueryRecoveryAgents EfsRpcRemoveUsersFromFile EfsRpcAddUsersToFile \
         Opnum10NotUsedOnWire EfsRpcNotSupported EfsRpcFileKeyInfo \
         EfsRpcDuplicateEncryptionInfoFile Opnum14NotUsedOnWire EfsRpcAddUsersToFileEx \
         EfsRpcFileKeyInfoEx Opnum17NotUsedOnWire EfsRpcGetEncryptedFileMetadata \
         EfsRpcSetEncryptedFileMetadata EfsRpcFlushEfsCache EfsRpcEncryptFileExServ \
         EfsRpcQueryProtectors Opnum23NotUsedOnWire Opnum24NotUsedOnWire \
         Opnum25NotUsedOnWire Opnum26NotUsedOnWire Opnum27NotUsedOnWire \
         Opnum28NotUsedOnWire Opnum29NotUsedOnWire Opnum30NotUsedOnWire \
         Opnum31NotUsedOnWire Opnum32NotUsedOnWire Opnum33NotUsedOnWire \
         Opnum34NotUsedOnWire Opnum35NotUsedOnWire Opnum36NotUsedOnWire \
         Opnum37NotUsedOnWire Opnum38NotUsedOnWire Opnum39NotUsedOnWire \
         Opnum40NotUsedOnWire Opnum41NotUsedOnWire Opnum42NotUsedOnWire \
         Opnum43NotUsedOnWire Opnum44NotUsedOnWire",
    ),
    (
        0xccd8_c074_d0e5_4a40_92b4_d074_faa6_ba28,
        "WitnessrGetInterfaceList WitnessrRegister WitnessrUnRegister WitnessrAsyncNotify \
         WitnessrRegisterEx",
    ),
    (
        0xd049_b186_814f_11d1_9a3c_00c0_4fc9_b232,
        "Opnum0NotUsedOnWire Opnum1NotUsedOnWire Opnum2NotUsedOnWire Opnum3NotUsedOnWire \
         NtFrsApi_Rpc_Set_DsPollingIntervalW NtFrsApi_Rpc_Get_DsPollingIntervalW \
         Opnum6NotUsedOnWire NtFrsApi_Rpc_InfoW NtFrsApi_Rpc_IsPathReplicated \
         NtFrsApi_Rpc_WriterCommand NtFrsApi_Rpc_ForceReplication",
    ),
    (
        0xd2d7_9df5_3400_11d0_b40b_00aa_005f_f586,
        "- - - EnumDisksEx EnumDiskRegionsEx CreatePartition CreatePartitionAssignAndFormat \
         CreatePartitionAssignandFormatEx DeletePartition WriteSignature \
         MarkActivePartition Eject Opnum12NotUsedOnWire FTEnumVolumes \
         FTEnumLogicalDiskMembers FTDeleteVolume FTBreakMirror FTResyncMirror \
         FTRegenerateParityStripe FTReplaceMirrorPartition FTReplaceParityStripePartition \
         EnumDriveLetters AssignDriveLetter FreeDriveLetter EnumLocalFileSystems \
         GetInstalledFileSystems Format Opnum27NotUsedOnWire EnumVolumes EnumVolumeMembers \
         CreateVolume CreateVolumeAssignAndFormat CreateVolumeAssignAndFormatEx \
         GetVolumeMountName GrowVolume DeleteVolume AddMirror RemoveMirror SplitMirror \
         InitializeDiskEx UninitializeDisk ReConnectDisk Opnum42NotUsedOnWire \
         ImportDiskGroup DiskMergeQuery DiskMerge Opnum46NotUsedOnWire ReAttachDisk \
         Opnum48NotUsedOnWire Opnum49NotUsedOnWire Opnum50NotUsedOnWire ReplaceRaid5Column \
         RestartVolume GetEncapsulateDiskInfoEx EncapsulateDiskEx \
         QueryChangePartitionNumbers DeletePartitionNumberInfoFromRegistry SetDontShow \
         GetDontShow Opnum59NotUsedOnWire Opnum60NotUsedOnWire Opnum61NotUsedOnWire \
         Opnum62NotUsedOnWire Opnum63NotUsedOnWire Opnum64NotUsedOnWire \
         Opnum65NotUsedOnWire Opnum66NotUsedOnWire EnumTasks GetTaskDetail AbortTask \
         HrGetErrorData Initialize Uninitialize Refresh RescanDisks RefreshFileSys \
         SecureSystemPartition ShutDownSystem EnumAccessPath EnumAccessPathForVolume \
         AddAccessPath DeleteAccessPath",
    ),
    (0xd2d7_9df7_3400_11d0_b40b_00aa_005f_f586, "- - - ObjectsChanged"),
    (
        0xd3fb_b514_0e3b_11cb_8fad_0800_2b1d_29c3,
        "nsi_binding_lookup_begin nsi_binding_lookup_done nsi_binding_lookup_next \
         nsi_mgmt_handle_set_exp_age",
    ),
    (0xd6d7_0ef0_0e3b_11cb_acc3_0800_2b1d_29c3, "nsi_binding_export nsi_binding_unexport"),
    (
        0xd6d7_0ef0_0e3b_11cb_acc3_0800_2b1d_29c4,
        "nsi_group_delete nsi_group_mbr_add nsi_group_mbr_remove nsi_group_mbr_inq_begin \
         nsi_group_mbr_inq_next nsi_group_mbr_inq_done nsi_profile_delete \
         nsi_profile_elt_add nsi_profile_elt_remove nsi_profile_elt_inq_begin \
         nsi_profile_elt_inq_next nsi_profile_elt_inq_done nsi_entry_object_inq_begin \
         nsi_entry_object_inq_next nsi_entry_object_inq_done nsi_entry_expand_name \
         nsi_mgmt_binding_unexport nsi_mgmt_entry_delete nsi_mgmt_entry_create \
         nsi_mgmt_entry_inq_if_ids nsi_mgmt_inq_exp_age nsi_mgmt_inq_set_age",
    ),
    (0xd95a_fe70_a6d5_4259_822e_2c84_da1d_db0d, "WsdrInitiateShutdown WsdrAbortShutdown"),
    (0xd99e_6e70_fc88_11d0_b498_00a0_c903_12f3, "- - - Request GetCACert Ping"),
    (
        0xd99e_6e71_fc88_11d0_b498_00a0_c903_12f3,
        "- - - SetExtension SetAttributes ResubmitRequest DenyRequest IsValidCertificate \
         PublishCRL GetCRL RevokeCertificate EnumViewColumn GetViewDefaultColumnSet \
         EnumAttributesOrExtensions OpenView EnumView CloseView ServerControl Ping \
         GetServerState BackupPrepare BackupEnd BackupGetAttachmentInformation \
         BackupGetBackupLogs BackupOpenFile BackupReadFile BackupCloseFile \
         BackupTruncateLogs ImportCertificate BackupGetDynamicFiles \
         RestoreGetDatabaseLocations",
    ),
    (0xdeb0_1010_3a37_4d26_99df_e2bb_6ae3_ac61, "- - - RefreshEx GetVolumeDeviceName"),
    (
        0xdf19_41c5_fe89_4e79_bf10_4636_57ac_f44d,
        "EfsRpcOpenFileRaw EfsRpcReadFileRaw EfsRpcWriteFileRaw EfsRpcCloseRaw \
         EfsRpcEncryptFileSrv EfsDecryptFileSrv EfsRpcQueryUsersOnFile \
         EfsRpcQueryRecoveryAgents EfsRpcRemoveUsersFromFile EfsRpcAddUsersToFile \
         Opnum10NotUsedOnWire EfsRpcNotSupported EfsRpcFileKeyInfo \
         EfsRpcDuplicateEncryptionInfoFile Opnum14NotUsedOnWire EfsRpcAddUsersToFileEx \
         EfsRpcFileKeyInfoEx Opnum17NotUsedOnWire EfsRpcGetEncryptedFileMetadata \
         EfsRpcSetEncryptedFileMetadata EfsRpcFlushEfsCache EfsRpcEncryptFileExServ \
         EfsRpcQueryProtectors Opnum23NotUsedOnWire Opnum24NotUsedOnWire \
         Opnum25NotUsedOnWire Opnum26NotUsedOnWire Opnum27NotUsedOnWire \
         Opnum28NotUsedOnWire Opnum29NotUsedOnWire Opnum30NotUsedOnWire \
         Opnum31NotUsedOnWire Opnum32NotUsedOnWire Opnum33NotUsedOnWire \
         Opnum34NotUsedOnWire Opnum35NotUsedOnWire Opnum36NotUsedOnWire \
         Opnum37NotUsedOnWire Opnum38NotUsedOnWire Opnum39NotUsedOnWire \
         Opnum40NotUsedOnWire Opnum41NotUsedOnWire Opnum42NotUsedOnWire \
         Opnum43NotUsedOnWire Opnum44NotUsedOnWire",
    ),
    (
        0xe1af_8308_5d1f_11c9_91a4_0800_2b14_a0fa,
        "ept_insert ept_delete ept_lookup ept_map ept_lookup_handle_free ept_inq_object \
         ept_mgmt_delete ept_map_auth ept_map_auth_async",
    ),
    (
        0xe33c_0cc4_0482_101a_bc0c_0260_8c6b_a218,
        "I_nsi_lookup_begin I_nsi_lookup_done I_nsi_lookup_next I_nsi_entry_object_inq_next \
         I_nsi_ping_locator I_nsi_entry_object_inq_done I_nsi_entry_object_inq_begin",
    ),
    (
        0xe351_4235_4b06_11d1_ab04_00c0_4fc2_dcd2,
        "DRSBind DRSUnbind DRSReplicaSync DRSGetNCChanges DRSUpdateRefs DRSReplicaAdd \
         DRSReplicaDel DRSReplicaModify DRSVerifyNames DRSGetMemberships DRSInterDomainMove \
         DRSGetNT4ChangeLog DRSCrackNames DRSWriteSPN DRSRemoveDsServer DRSRemoveDsDomain \
         DRSDomainControllerInfo DRSAddEntry DRSExecuteKCC DRSGetReplInfo DRSAddSidHistory \
         DRSGetMemberships2 DRSReplicaVerifyObjects DRSGetObjectExistence \
         DRSQuerySitesByCost IDL_DRSInitDemotion IDL_DRSReplicaDemotion \
         IDL_DRSFinishDemotion IDL_DRSAddCloneDC IDL_DRSWriteNgcKey IDL_DRSReadNgcKey",
    ),
    (0xe3d0_d746_d2af_40fd_8a7a_0d70_78bb_7092, "ExchangePublicKeys"),
    (
        0xe65e_8028_83e8_491b_9af7_aaf6_bd51_a0ce,
        "- - - GetReport GetCompressedReport GetRawReportEx GetReferenceVersionVectors \
         Opnum7NotUsedOnWire GetReferenceBacklogCounts",
    ),
    (0xe8fb_8620_588f_11d2_9d61_00c0_4f79_c5fe, "- - - - - - - Stop Start Reboot Status Kill"),
    (
        0xf309_ad18_d86a_11d0_a075_00c0_4fb6_8820,
        "- - - EstablishPosition RequestChallenge WBEMLogin NTLMLogin",
    ),
    (0xf319_31a9_832d_481c_9503_887a_0e6a_79f0, "- - - - - - - GetSupportedClient"),
    (
        0xf50a_ac00_c7f3_428e_a022_a6b7_1bfb_9d43,
        "SSCatDBAddCatalog SSCatDBDeleteCatalog SSCatDBEnumCatalogs \
         SSCatDBRegisterForChangeNotification KeyrCloseKeyService SSCatDBRebuildDatabase",
    ),
    (
        0xf5cc_59b4_4264_101a_8c59_0800_2b2f_8426,
        "FrsRpcSendCommPkt FrsRpcVerifyPromotionParent FrsRpcStartPromotionParent FrsNOP \
         FrsBackupComplete FrsBackupComplete FrsBackupComplete FrsBackupComplete \
         FrsBackupComplete FrsBackupComplete FrsRpcVerifyPromotionParentEx",
    ),
    (
        0xf5cc_5a18_4264_101a_8c59_0800_2b2f_8426,
        "NspiBind NspiUnbind NspiUpdateStat NspiQueryRows NspiSeekEntries NspiGetMatches \
         NspiResortRestriction NspiDNToEph NspiGetPropList NspiGetProps NspiCompareMIds \
         NspiModProps NspiGetSpecialTable NspiGetTemplateInfo NspiModLinkAtt - \
         NspiQueryColumns NspiGetNamesFromIDs NspiGetIDsFromNames NspiResolveNames \
         NspiResolveNamesW",
    ),
    (
        0xf612_954d_3b0b_4c56_9563_227b_7be6_24b4,
        "- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - \
         GetChildPaths",
    ),
    (
        0xf6be_aff7_1e19_4fbb_9f8f_b89e_2018_337c,
        "EvtRpcRegisterRemoteSubscription EvtRpcRemoteSubscriptionNextAsync \
         EvtRpcRemoteSubscriptionNext EvtRpcRemoteSubscriptionWaitAsync \
         EvtRpcRegisterControllableOperation EvtRpcRegisterLogQuery EvtRpcClearLog \
         EvtRpcExportLog EvtRpcLocalizeExportLog EvtRpcMessageRender \
         EvtRpcMessageRenderDefault EvtRpcQueryNext EvtRpcQuerySeek EvtRpcClose \
         EvtRpcCancel EvtRpcAssertConfig EvtRpcRetractConfig EvtRpcOpenLogHandle \
         EvtRpcGetLogFileInfo EvtRpcGetChannelList EvtRpcGetChannelConfig \
         EvtRpcPutChannelConfig EvtRpcGetPublisherList EvtRpcGetPublisherListForChannel \
         EvtRpcGetPublisherMetadata EvtRpcGetPublisherResourceMetadata \
         EvtRpcGetEventMetadataEnum EvtRpcGetNextEventMetadata \
         EvtRpcGetClassicLogDisplayName",
    ),
    (
        0xfa7d_f749_66e7_4986_a27f_e2f0_4ae5_3772,
        "- - - GetProviderMgmtInterface QueryVolumesSupportedForSnapshots \
         QuerySnapshotsByVolume",
    ),
    (
        0xfc91_0418_55ca_45ef_b264_83d4_ce7d_30e0,
        "- - - - - - - GetRemoteUserCategories SetRemoteUserCategories \
         RefreshRemoteSessionWeights",
    ),
    (0xfdf8_a2b9_02de_47f4_bc26_aa85_ab5e_5267, "- - - - - CreateVirtualSmartCardWithPinPolicy"),
];
