//! Events of Modbus.

use gannet_event::Connection;

gannet_event::record! {
    /// The header of a message.
    #[derive(Clone, Copy, Debug)]
    pub struct Headers = "ModbusHeaders" {
        /// Transaction identifier.
        tid: u16 = "tid",
        /// Protocol identifier: always 0.
        pid: u64 = "pid",
        /// Unit identifier.
        uid: u64 = "uid",
        /// Function code; an exception has its high bit set.
        function_code: u64 = "function_code",
        /// Number of bytes of the message after the unit identifier.
        len: u64 = "len",
    }
}

gannet_event::record! {
    /// Records of a file that are to be read.
    #[derive(Clone, Copy, Debug)]
    pub struct FileRecordRequest = "ModbusFileRecordRequest" {
        /// Reference type: always 6.
        ref_type: u64 = "ref_type",
        /// File number.
        file_num: u16 = "file_num",
        /// Number of the first record.
        record_num: u16 = "record_num",
        /// Number of records.
        record_len: u16 = "record_len",
    }
}

gannet_event::record! {
    /// Records of a file that were read.
    #[derive(Clone, Copy, Debug)]
    pub struct FileRecordResponse<'a> = "ModbusFileRecordResponse" {
        /// Number of bytes of the records.
        file_len: u64 = "file_len",
        /// Reference type: always 6.
        ref_type: u64 = "ref_type",
        /// The records.
        record_data: &'a [u8] = "record_data",
    }
}

gannet_event::record! {
    /// Records of a file that are written.
    #[derive(Clone, Copy, Debug)]
    pub struct FileReference<'a> = "ModbusFileReference" {
        /// Reference type: always 6.
        ref_type: u64 = "ref_type",
        /// File number.
        file_num: u16 = "file_num",
        /// Number of the first record.
        record_num: u16 = "record_num",
        /// Number of records.
        record_len: u16 = "record_len",
        /// The records.
        record_data: &'a [u8] = "record_data",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Modbus);

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// A message.
        pub struct ModbusMessage = "modbus_message" {
            /// Its header.
            headers: Headers = "headers",
            /// Whether the originator sent it.
            is_orig: bool = "is_orig",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// The header.
        headers: Headers = "headers",
    } {
        /// A request failed.
        pub struct ModbusException = "modbus_exception" {
            /// Exception code.
            code: u64 = "code",
        }

        /// Records of files are to be read.
        pub struct ModbusReadFileRecordRequest = "modbus_read_file_record_request", opt_in {
            /// Number of bytes of the references.
            byte_count: u64 = "byte_count",
            /// The records.
            refs: Vec<FileRecordRequest> = "refs",
        }

        /// Records of files were read.
        pub struct ModbusReadFileRecordResponse<'a> = "modbus_read_file_record_response", opt_in {
            /// Number of bytes of the references.
            byte_count: u64 = "byte_count",
            /// The records.
            refs: Vec<FileRecordResponse<'a>> = "refs",
        }

        /// Records of files are to be written.
        pub struct ModbusWriteFileRecordRequest<'a> = "modbus_write_file_record_request", opt_in {
            /// Number of bytes of the references.
            byte_count: u64 = "byte_count",
            /// The records.
            refs: Vec<FileReference<'a>> = "refs",
        }

        /// Records of files were written.
        pub struct ModbusWriteFileRecordResponse<'a> = "modbus_write_file_record_response", opt_in {
            /// Number of bytes of the references.
            byte_count: u64 = "byte_count",
            /// The records.
            refs: Vec<FileReference<'a>> = "refs",
        }

        /// Coils were read.
        pub struct ModbusReadCoilsResponse = "modbus_read_coils_response", opt_in {
            /// Their states.
            coils: Vec<bool> = "coils",
        }

        /// Inputs were read.
        pub struct ModbusReadDiscreteInputsResponse = "modbus_read_discrete_inputs_response", opt_in {
            /// Their states.
            coils: Vec<bool> = "coils",
        }

        /// Registers were read.
        pub struct ModbusReadHoldingRegistersResponse = "modbus_read_holding_registers_response", opt_in {
            /// Their values.
            registers: Vec<u16> = "registers",
        }

        /// Input registers were read.
        pub struct ModbusReadInputRegistersResponse = "modbus_read_input_registers_response", opt_in {
            /// Their values.
            registers: Vec<u16> = "registers",
        }

        /// A coil is to be set.
        pub struct ModbusWriteSingleCoilRequest = "modbus_write_single_coil_request", opt_in {
            /// Address of the coil.
            address: u16 = "address",
            /// Its state.
            value: bool = "value",
        }

        /// A coil was set.
        pub struct ModbusWriteSingleCoilResponse = "modbus_write_single_coil_response", opt_in {
            /// Address of the coil.
            address: u16 = "address",
            /// Its state.
            value: bool = "value",
        }

        /// Registers are to be set and others read.
        pub struct ModbusReadWriteMultipleRegistersRequest = "modbus_read_write_multiple_registers_request", opt_in {
            /// Address of the first register to read.
            read_start_address: u16 = "read_start_address",
            /// Number of registers to read.
            read_quantity: u16 = "read_quantity",
            /// Address of the first register to set.
            write_start_address: u16 = "write_start_address",
            /// Values to set.
            write_registers: Vec<u16> = "write_registers",
        }

        /// Registers were set and others read.
        pub struct ModbusReadWriteMultipleRegistersResponse = "modbus_read_write_multiple_registers_response", opt_in {
            /// Values that were read, as in Zeek despite the name.
            written_registers: Vec<u16> = "written_registers",
        }

        /// A FIFO queue is to be read.
        pub struct ModbusReadFifoQueueRequest = "modbus_read_fifo_queue_request", opt_in {
            /// Address of the queue.
            start_address: u16 = "start_address",
        }

        /// A FIFO queue was read.
        pub struct ModbusReadFifoQueueResponse = "modbus_read_fifo_queue_response", opt_in {
            /// Values in the queue.
            fifos: Vec<u16> = "fifos",
        }

        /// A client requests diagnostics.
        pub struct ModbusDiagnosticsRequest<'a> = "modbus_diagnostics_request", opt_in {
            /// Subfunction code.
            subfunction: u16 = "subfunction",
            /// Arguments.
            data: &'a [u8] = "data",
        }

        /// A server returns the results of diagnostics.
        pub struct ModbusDiagnosticsResponse<'a> = "modbus_diagnostics_response", opt_in {
            /// Subfunction code.
            subfunction: u16 = "subfunction",
            /// Results.
            data: &'a [u8] = "data",
        }

        /// A request carries data of another protocol.
        pub struct ModbusEncapRequest<'a> = "modbus_encap_interface_transport_request", opt_in {
            /// MEI type: which protocol.
            mei_type: u64 = "mei_type",
            /// Data of that protocol.
            data: &'a [u8] = "data",
        }

        /// A response carries data of another protocol.
        pub struct ModbusEncapResponse<'a> = "modbus_encap_interface_transport_response", opt_in {
            /// MEI type: which protocol.
            mei_type: u64 = "mei_type",
            /// Data of that protocol.
            data: &'a [u8] = "data",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// The header.
        headers: Headers = "headers",
        /// Address of the first item.
        start_address: u16 = "start_address",
        /// Number of items.
        quantity: u16 = "quantity",
    } {
        /// Coils are to be read.
        pub struct ModbusReadCoilsRequest = "modbus_read_coils_request", opt_in {}

        /// Inputs are to be read.
        pub struct ModbusReadDiscreteInputsRequest = "modbus_read_discrete_inputs_request", opt_in {}

        /// Registers are to be read.
        pub struct ModbusReadHoldingRegistersRequest = "modbus_read_holding_registers_request", opt_in {}

        /// Input registers are to be read.
        pub struct ModbusReadInputRegistersRequest = "modbus_read_input_registers_request", opt_in {}

        /// Coils were set.
        pub struct ModbusWriteMultipleCoilsResponse = "modbus_write_multiple_coils_response", opt_in {}

        /// Registers were set.
        pub struct ModbusWriteMultipleRegistersResponse = "modbus_write_multiple_registers_response", opt_in {}
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// The header.
        headers: Headers = "headers",
        /// Address of the register.
        address: u16 = "address",
    } {
        /// A register is to be set.
        pub struct ModbusWriteSingleRegisterRequest = "modbus_write_single_register_request", opt_in {
            /// Its value.
            value: u16 = "value",
        }

        /// A register was set.
        pub struct ModbusWriteSingleRegisterResponse = "modbus_write_single_register_response", opt_in {
            /// Its value.
            value: u16 = "value",
        }

        /// Bits of a register are to be set.
        pub struct ModbusMaskWriteRegisterRequest = "modbus_mask_write_register_request", opt_in {
            /// Bits to keep.
            and_mask: u16 = "and_mask",
            /// Bits to set.
            or_mask: u16 = "or_mask",
        }

        /// Bits of a register were set.
        pub struct ModbusMaskWriteRegisterResponse = "modbus_mask_write_register_response", opt_in {
            /// Bits to keep.
            and_mask: u16 = "and_mask",
            /// Bits to set.
            or_mask: u16 = "or_mask",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// The header.
        headers: Headers = "headers",
        /// Address of the first item.
        start_address: u16 = "start_address",
    } {
        /// Coils are to be set.
        pub struct ModbusWriteMultipleCoilsRequest = "modbus_write_multiple_coils_request", opt_in {
            /// Their states.
            coils: Vec<bool> = "coils",
        }

        /// Registers are to be set.
        pub struct ModbusWriteMultipleRegistersRequest = "modbus_write_multiple_registers_request", opt_in {
            /// Their values.
            registers: Vec<u16> = "registers",
        }
    }
}
